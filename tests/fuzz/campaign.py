#!/usr/bin/env python3
"""Runs the fuzz targets in turn and keeps count in docs/fuzzing.md.

    tests/fuzz/campaign.py --seconds 600          every target, ten minutes each; run it again to go on
    tests/fuzz/campaign.py --seconds 60 --check   as CI does: fails on a finding, changes no file
    tests/fuzz/campaign.py --collect              puts inputs with new coverage into seeds/

Needs cargo-fuzz. The document is the state: its rows are read, added to and written back. A finding
stops the campaign; its input is in tests/fuzz/artifacts.
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DOC = ROOT / "docs" / "fuzzing.md"
CORPUS = HERE / "corpus"
OBJECTS = ROOT / "tests" / "fixtures" / "code-objects"
GOAL_RUNS = 10**8
GOAL_SECONDS = 3600
# The code under test is safe Rust: its checks are the language's and stay on, and without a sanitizer a
# core second covers several times as much.
SANITIZER = ["--sanitizer", "none"]
# Inputs above this are not worth their place in the repository.
LARGEST_SEED = 4096

HEAD = f"""# Fuzzing

How much each target of `tests/fuzz` has run, on one core, without a finding. A target has run enough after
{GOAL_RUNS:,} executions or {GOAL_SECONDS} core seconds. `tests/fuzz/campaign.py --seconds N` goes on from
here and writes this file; what every target reads is in `tests/fuzz/README.md`. A finding stops the
campaign and becomes a test; the counts start again at zero for a target whose code under test changed
in more than layout (delete its row).

| target | executions | core seconds | edges covered | enough | last run |
| --- | ---: | ---: | ---: | --- | --- |
"""
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| \w+ \| (.*?) \|$", re.M)


def targets():
    return re.findall(r'^name = "(\w+)"\npath = "fuzz_targets/', (HERE / "Cargo.toml").read_text(), re.M)


def totals():
    if not DOC.exists():
        return {}
    number = lambda text: int(text.replace(",", ""))
    return {
        name: [number(runs), number(seconds), number(edges), last]
        for name, runs, seconds, edges, last in ROW.findall(DOC.read_text())
    }


def write(rows):
    lines = []
    for name in targets():
        runs, seconds, edges, last = rows.get(name, [0, 0, 0, "never"])
        enough = "yes" if runs >= GOAL_RUNS or seconds >= GOAL_SECONDS else "no"
        lines.append(f"| `{name}` | {runs:,} | {seconds:,} | {edges:,} | {enough} | {last} |\n")
    DOC.write_text(HEAD + "".join(lines))


def seeds(name):
    own = HERE / "seeds" / name
    return [str(path) for path in (own, OBJECTS) if path.is_dir() and (path == own or name.startswith("hsaco_"))]


def fuzz(arguments, **options):
    environment = dict(os.environ, RUSTC_BOOTSTRAP="1")
    command, *rest = arguments
    return subprocess.Popen(["cargo", "fuzz", command, *SANITIZER, *rest], cwd=ROOT, env=environment, text=True, **options)


def core_seconds():
    """Processor time of the children that have ended: others may use the machine meanwhile."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(name, seconds, corpus):
    corpus.mkdir(parents=True, exist_ok=True)
    if fuzz(["build", "--fuzz-dir", str(HERE), name]).wait() != 0:
        sys.exit(f"{name}: does not build")
    before = core_seconds()
    process = fuzz(["run", "--fuzz-dir", str(HERE), name, str(corpus), *seeds(name), "--",
                    f"-max_total_time={seconds}", "-print_final_stats=1", "-rss_limit_mb=2048", "-timeout=25"], stderr=subprocess.PIPE)
    edges, runs, tail = 0, None, []
    for line in process.stderr:
        tail = [*tail[-40:], line]
        if found := re.search(r"cov: (\d+)", line):
            edges = int(found[1])
        if found := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
            runs = int(found[1])
    if process.wait() != 0 or runs is None:
        sys.stderr.writelines(tail)
        sys.exit(f"{name}: stopped with status {process.returncode}")
    return runs, int(core_seconds() - before), edges


def campaign(names, seconds, check):
    for name in names:
        if check:
            with tempfile.TemporaryDirectory() as corpus:
                runs, took, edges = run(name, seconds, pathlib.Path(corpus))
        else:
            runs, took, edges = run(name, seconds, CORPUS / name)
            rows = totals()
            row = rows.setdefault(name, [0, 0, 0, ""])
            row[0] += runs
            row[1] += took
            row[2] = max(row[2], edges)
            row[3] = time.strftime("%Y-%m-%d")
            write(rows)
        print(f"{name}: {runs:,} executions in {took} s, {edges:,} edges", flush=True)


def collect(names):
    for name in names:
        if not (CORPUS / name).is_dir():
            continue
        own = HERE / "seeds" / name
        own.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as merged:
            process = fuzz(["run", "--fuzz-dir", str(HERE), name, merged, *seeds(name), str(CORPUS / name),
                            "--", "-merge=1"], stderr=subprocess.PIPE)
            tail = process.stderr.read()
            if process.wait() != 0:
                sys.exit(f"{name}: the merge failed\n{tail[-2000:]}")
            known = {path.read_bytes() for path in own.iterdir()}
            added = 0
            for path in sorted(pathlib.Path(merged).iterdir()):
                if path.stat().st_size <= LARGEST_SEED and path.read_bytes() not in known:
                    shutil.copy(path, own / path.name[:16])
                    added += 1
        print(f"{name}: {added} inputs added", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="time for each target")
    parser.add_argument("--check", action="store_true", help="change no file")
    parser.add_argument("--collect", action="store_true", help="keep inputs with new coverage as seeds")
    parser.add_argument("--unfinished", action="store_true", help="only targets that have not run enough")
    arguments = parser.parse_args()
    names = arguments.targets or targets()
    if unknown := set(names) - set(targets()):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if arguments.unfinished:
        done = {n for n, row in totals().items() if row[0] >= GOAL_RUNS or row[1] >= GOAL_SECONDS}
        names = [name for name in names if name not in done]
    if arguments.collect:
        collect(names)
    else:
        campaign(names, arguments.seconds, arguments.check)


if __name__ == "__main__":
    main()
