"""`benchmarks/launch`, which includes an emitted kernel, is built of what `compile` and `link` emit now."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_benchmark_of_launches_builds(tmp_path):
    given = [f"BUILD={tmp_path}", f"DEUTERON={sys.executable} -m deuteron"]
    subprocess.run(["make", "-s", "build", *given], cwd=ROOT / "benchmarks/launch", check=True)
    for kernel in ("few", "many", "most", "tiles"):
        # Without a driver or a device the programs say so, and end with 2.
        run = subprocess.run([tmp_path / kernel / "bench"], capture_output=True, text=True, check=False)
        assert run.returncode in (0, 2), run.stderr
        assert "a launch" in run.stdout or "no" in run.stderr.lower()
