"""The examples of many machines give the bytes of one process; the example of continuous integration and the notebook run."""

import importlib.util
import json
import os
import pickle
import re
import runpy
import subprocess
import sys

import numpy as np
from support import CALIBRATION, EVALUATION, GLYPHS, PACKAGE, PROGRAM, ROOT, Case, samples

import tare

CLUSTER = ROOT / "examples" / "cluster"


# A local Ray of one test reports nothing, writes no token to the home folder, has few tasks, and gives the processes that it starts
# the time that they need on a machine with other work.
RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "SHARDS": "3",
    **dict.fromkeys(("RAY_agent_register_timeout_ms", "RAY_health_check_timeout_ms", "RAY_health_check_initial_delay_ms"), "600000"),
    **dict.fromkeys(("RAY_worker_register_timeout_seconds", "RAY_gcs_server_port_wait_time_s"), "600"),
}
#: No setting of Ray gives its agent more than 15 s to choose a port: Ray says so when its node, which waits for that, has ended.
NOT_STARTED = "The current node timed out during startup"


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TARE": str(PROGRAM), **RAY, **more}


class Parts(Case):
    def setUp(self):
        super().setUp()
        self.files = []
        for number in range(3):
            path = self.tmp / f"samples-{number}.tfrecord.gz"
            tare.write_records(path, ({"image": image[np.newaxis]} for image in samples()[100 * number : 100 * (number + 1)]))
            self.files.append(str(path))
        tare.calibrate(self.model, self.files).save(self.tmp / "one.calib")
        self.one = (self.tmp / "one.calib").read_bytes()

    def run_script(self, command, again=None, **more):
        """Runs a command that succeeds; one that fails with the text `again` has two more attempts, as the output of the test says."""
        for attempt in range(3):
            result = subprocess.run([str(part) for part in command], env=environment(**more), cwd=self.tmp, capture_output=True, text=True)
            if not result.returncode or not again or again not in result.stderr:
                break
            print(f"attempt {attempt + 1}: {again}")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_in_python_are_values(self):
        parts = []
        for index in range(3):
            out = self.tmp / f"part-{index}.calib"
            self.run_script([PROGRAM, "calibrate", self.model.path, "--data", self.tmp / "samples-*.tfrecord.gz", "--shard", f"{index}/3", "-o", out])
            parts.append(pickle.loads(pickle.dumps(tare.Calibration.load(out))))
        self.assertEqual(parts[2].merge(parts[0], parts[1]).to_bytes(), self.one)

    def test_of_slurm_and_kubernetes(self):
        for name in ("slurm", "kubernetes"):
            out = self.tmp / name
            for index in (2, 0, 1, 0):  # one of them again
                numbers = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_TASK_COUNT": "3"}
                if name == "kubernetes":
                    numbers = {"JOB_COMPLETION_INDEX": str(index), "SHARDS": "3"}
                self.run_script([CLUSTER / "calibrate_shard.sh", self.model.path, self.tmp / "samples-*.tfrecord.gz", out], **numbers)
            self.run_script([CLUSTER / "merge_parts.sh", out, 3])
            self.assertEqual((out / "all.calib").read_bytes(), self.one)
        (out / "part-1.calib").unlink()
        failed = subprocess.run([CLUSTER / "merge_parts.sh", out, "3"], env=environment(), capture_output=True, text=True)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("there are not 3 parts", failed.stderr)

    def test_of_slurm_are_submitted_with_their_merge(self):
        fake = self.tmp / "bin"
        fake.mkdir()
        (fake / "sbatch").write_text('#!/bin/sh\necho "$@" >>"$SUBMITTED"\necho 77\n')
        (fake / "sbatch").chmod(0o755)
        submitted = self.tmp / "submitted"
        path = f"{fake}:{os.environ['PATH']}"
        self.run_script([CLUSTER / "slurm.sh", "m", "d", "f", "4"], PATH=path, SUBMITTED=str(submitted))
        array, merge = submitted.read_text().splitlines()
        self.assertRegex(array, r"--array=0-3 .*calibrate_shard\.sh m d f$")
        self.assertRegex(merge, r"--dependency=afterok:77 .*merge_parts\.sh f 4$")

    def check_engine(self, package, script, *options, again=None):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        self.run_script([sys.executable, CLUSTER / script, self.model.path, self.tmp / "all.calib", *self.files, *options], again)
        self.assertEqual((self.tmp / "all.calib").read_bytes(), self.one)

    def test_of_beam(self):
        self.check_engine("apache_beam", "beam_calibrate.py", "--runner=DirectRunner")

    def test_of_ray(self):
        self.check_engine("ray", "ray_calibrate.py", again=NOT_STARTED)


class Examples(Case):
    def test_of_continuous_integration_run(self):
        text = (ROOT / "examples/ci/quantization.yml").read_text()
        command = " ".join(re.search(r"run: >-\n((?: {10}.*\n)+)", text).group(1).split())
        self.assertTrue(command.startswith("tare batch models "), command)
        for name in ("models", "data/glyphs"):
            (self.tmp / name).mkdir(parents=True)
        (self.tmp / "models/glyphs").symlink_to(GLYPHS / "saved_model")
        (self.tmp / "data/glyphs/samples.tfrecord.gz").symlink_to(CALIBRATION)
        (self.tmp / "data/glyphs/labelled.tfrecord.gz").symlink_to(EVALUATION)
        for limit, status in ((None, 0), ("-99", 1)):
            line = command if limit is None else command.replace("--max-drop 0.5", f"--max-drop=0 --max-size=1 --overwrite --report={self.tmp}/b.html")
            line = line.replace("tare", str(PROGRAM), 1)
            result = subprocess.run(["sh", "-c", line], cwd=self.tmp, capture_output=True, text=True)
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertTrue((self.tmp / "batch.html").exists())
        self.assertEqual(sorted(path.name for path in (self.tmp / "quantized").iterdir())[0], "glyphs-static")

    def test_notebook_is_the_tutorial_and_runs(self):
        make = runpy.run_path(str(ROOT / "scripts/make-notebook.py"))
        notebook = json.loads((ROOT / "examples/tutorial.ipynb").read_text(encoding="utf-8"))
        self.assertEqual(notebook, make["notebook"]((ROOT / "python/examples/tutorial.py").read_text(encoding="utf-8")), "make it anew")
        (self.tmp / "examples").symlink_to(ROOT / "examples")
        code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(code), 4)
        program = "import json, sys\nnames = {}\nfor cell in json.load(sys.stdin):\n    exec(compile(cell, 'cell', 'exec'), names)\n"
        result = subprocess.run([sys.executable, "-c", program], input=json.dumps(code), env=environment(), cwd=self.tmp, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^9[0-9.]+% correct")
