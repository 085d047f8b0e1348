"""What only a process of its own shows: Ctrl-C, memory over many records, and what remains after the interpreter ends."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from support import GLYPHS, PACKAGE

import tare

HEAD = f"""
import gc, itertools, os, resource, signal, sys, time, tracemalloc, warnings
import numpy as np
import tare
warnings.simplefilter("ignore", tare.TareWarning)
model = tare.load({str(GLYPHS / "saved_model")!r})
image = np.random.default_rng(1).random((28, 28, 1), dtype=np.float32)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
"""


def start(code, **arguments):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(code)], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.PIPE, env={**environment, **arguments})  # fmt: skip


def output_of(code):
    out, err = start(code).communicate(timeout=500)
    if err:
        raise AssertionError(err)
    return out.split()


class Interrupts(unittest.TestCase):
    def interrupt(self, code):
        """Sends SIGINT to work without an end; returns the seconds until the process has raised KeyboardInterrupt."""
        with tempfile.TemporaryDirectory() as folder:
            process = start(textwrap.dedent(code) + 'print("not interrupted")', TMPDIR=folder)
            self.addCleanup(process.communicate)
            self.assertEqual(process.stdout.readline(), "working\n")
            time.sleep(0.3)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            seconds = time.monotonic() - began
            self.assertEqual(out, "")
            self.assertIn("KeyboardInterrupt", err)
            self.assertEqual(os.listdir(folder), [])
        return seconds

    def test_calibration_of_a_generator(self):
        self.assertLess(self.interrupt("""
            def records():
                yield image
                print("working", flush=True)
                while True:
                    yield image
            tare.calibrate(model, records())
        """), 5)  # fmt: skip

    def test_calibration_of_files(self):
        self.assertLess(self.interrupt("""
            import tempfile
            folder = tempfile.mkdtemp(dir="/tmp")
            tare.write_records(folder + "/a.tfrecord", ({"image": image[None]} for i in range(20000)))
            print("working", flush=True)
            try:
                tare.calibrate(model, folder + "/a.tfrecord", workers=1, batch=1)
            finally:
                import shutil
                shutil.rmtree(folder)
        """), 5)  # fmt: skip

    def test_comparison(self):
        self.assertLess(self.interrupt("""
            def metric(outputs, labels):
                return 0.0
            def records():
                for i in range(20000):
                    if i == 200:
                        print("working", flush=True)
                    yield image
            tare.compare(model, records(), methods=["weight_only"], metric=metric)
        """), 5)  # fmt: skip

    def test_handlers_run_during_calls(self):
        self.assertEqual(output_of("""
            class Alarm(Exception):
                pass
            def on_alarm(*_):
                raise Alarm
            signal.signal(signal.SIGALRM, on_alarm)
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                tare.compare(model, itertools.repeat(image), methods=["weight_only"])
            except Alarm:
                print("alarm")
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(tare.calibrate(model, itertools.repeat(image, 5)).records)
        """), ["alarm", "5"])  # fmt: skip

    def test_calls_of_other_threads_go_on(self):
        self.assertEqual(output_of("""
            import threading
            class Alarm(Exception):
                pass
            def on_alarm(*_):
                raise Alarm
            signal.signal(signal.SIGALRM, on_alarm)
            ended, results = threading.Event(), []
            def endless():
                while not ended.is_set():
                    yield image
            thread = threading.Thread(target=lambda: results.append(tare.compare(model, endless(), methods=["weight_only"])))
            thread.start()
            large = np.zeros((20000, 28, 28, 1), np.float32)
            for i in range(5):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                try:
                    while True:
                        model.run(large)
                except Alarm:
                    print("alarm")
            ended.set()
            thread.join()
            print(len(results[0].rows))
        """), ["alarm"] * 5 + ["2"])  # fmt: skip

    def test_exceptions_of_a_call_stop_it_alone(self):
        self.assertEqual(output_of("""
            import threading
            ended, done = threading.Event(), []
            def run():
                while not ended.is_set():
                    model.run(image[None])
                    done.append(1)
            def failing(outputs, labels):
                raise ValueError
            thread = threading.Thread(target=run)
            thread.start()
            for i in range(20):
                try:
                    tare.compare(model, [image] * 50, methods=["weight_only"], metric=failing)
                except ValueError:
                    print(i)
            runs = len(done)
            while len(done) == runs and thread.is_alive():
                time.sleep(0.01)
            print(thread.is_alive())
            ended.set()
        """), [str(i) for i in range(20)] + ["True"])  # fmt: skip

    def test_state_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.state")
            self.interrupt(f"""
                def records():
                    for i in range(40):
                        yield image
                    print("working", flush=True)
                    while True:
                        pass
                tare.calibrate(model, records(), state={path!r})
            """)  # fmt: skip
            self.assertEqual(tare.Calibration.load(path).records, 40)
            self.assertEqual(output_of(f"""
                print(tare.calibrate(model, itertools.repeat(image, 50), state={path!r}).records)
            """), ["50"])  # fmt: skip
            self.assertEqual(os.listdir(folder), [])

    def test_runs(self):
        self.assertLess(self.interrupt("""
            print("working", flush=True)
            model.run(np.zeros((200000, 28, 28, 1), np.float32))
        """), 5)  # fmt: skip


class Memory(unittest.TestCase):
    def test_generators_are_streamed(self):
        first, second = map(int, output_of("""
            tare.calibrate(model, itertools.repeat(image, 500))
            print(peak())
            tare.calibrate(model, (image.copy() for i in range(12000)))  # 38 MB
            print(peak())
        """))  # fmt: skip
        self.assertLess(second - first, 15)

    def test_nothing_leaks(self):
        small, blocks, resident = map(float, output_of("""
            def work():
                calibration = tare.calibrate(model, itertools.repeat(image, 3))
                calibration.histogram(calibration.tensors[0]), calibration.ranges()
                quantized = model.quantize("static", calibration)
                quantized.run({"image": image[None]})
                try:
                    model.run({"image": 3.0})
                except tare.ShapeError:
                    pass
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        tare.calibrate(model, itertools.repeat(image, 3))
                    except tare.TareWarning:
                        pass
                try:
                    tare.calibrate(model, iter([image, image[:3]]))
                except tare.ShapeError:
                    pass
                tare.compare(model, [image], methods=["weight_only"], metric=lambda outputs, labels: 1.0).to_html()
            for i in range(16):  # AddressSanitizer keeps the last 256 MB that were freed, those of seven rounds
                work()
            gc.collect()
            tracemalloc.start()
            work(); gc.collect()
            before, objects, pages = tracemalloc.get_traced_memory()[0], len(gc.get_objects()), peak()
            for i in range(25):
                work()
            gc.collect()
            print((tracemalloc.get_traced_memory()[0] - before) / 25, len(gc.get_objects()) - objects, peak() - pages)
        """))  # fmt: skip
        self.assertLess(small, 400)  # bytes per round, as Python counts them
        self.assertLess(blocks, 100)
        self.assertLess(resident, 12)  # MB of the whole process

    def test_the_interpreter_ends_in_any_state(self):
        self.assertEqual(output_of("""
            import threading
            calibrator = tare._model._native.calibrator_open(model._handle, "")
            records = tare.read_records(%r)
            next(records)
            held = model.run({"image": image[None]})
            threading.Thread(target=lambda: model.run({"image": image[None]})).start()
            print("end")
        """ % str(GLYPHS / "eval.tfrecord.gz")), ["end"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
