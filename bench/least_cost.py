#!/usr/bin/env python3
"""Runs a command several times and prints its least processor time in seconds and its peak resident memory in MiB.

    least_cost.py RUNS OUTPUT COMMAND...

OUTPUT, a file or directory that the command writes, is removed before each run ("-": none). Short commands are run more
often: up to 8 * RUNS times, as long as all runs take less than 2 seconds. Fails as the command fails. Memory is at least
that of Python, about 13 MiB, from which the command is started.
"""
import os
import shutil
import sys


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def run(command):
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(os.waitstatus_to_exitcode(status))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    runs, output, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    costs = []
    while len(costs) < runs or (len(costs) < 8 * runs and sum(seconds for seconds, _ in costs) < 2):
        remove(output)
        costs.append(run(command))
    print(f"{min(seconds for seconds, _ in costs):.4f} {max(memory for _, memory in costs):.1f}")


main()
