"""A library in a Rust program: the bindings compile without a warning, and cargo builds the example."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library.project import Project

EXAMPLES = Path(__file__).parents[2] / "examples"
MAIN = """
#[deny(warnings)]
#[allow(non_snake_case, non_upper_case_globals, dead_code)]
mod norms { include!("build/norms/norms.rs"); }

fn main() -> Result<(), norms::Error> {
    let mut x = [2f32; 70];
    norms::load_scale(norms::CPU)?;
    unsafe { norms::scale(norms::CPU, x.as_mut_ptr(), 1.5, 69, norms::scale_BLOCK_64_warps1_stages3)? };
    unsafe { norms::scale_default(norms::CPU, x.as_mut_ptr(), 2.0, 69)? };
    norms::unload_scale(norms::CPU)?;
    let wrong = unsafe { norms::scale(norms::CPU, x.as_mut_ptr(), 1.5, 69, 7) };
    println!("{} {} {}", x[68], x[69], wrong.unwrap_err());
    Ok(())
}
"""


@pytest.mark.skipif(not shutil.which("rustc"), reason="needs rustc")
def test_the_bindings(built: Project, tmp_path: Path):
    (tmp_path / "main.rs").write_text(MAIN.replace("build/norms", str(built.out)))
    command = ["rustc", "--edition", "2024", "-L", built.out, "-l", "static=norms", tmp_path / "main.rs"]
    subprocess.run([*command, "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert printed == "6 2 invalid value\n"


@pytest.mark.skipif(not shutil.which("cargo"), reason="needs cargo")
def test_the_example(tmp_path: Path):
    """Built, not built again, and built again after a kernel was edited."""
    project = tmp_path / "a project"
    for name in ("cmake", "rust"):
        ignored = shutil.ignore_patterns("build", "vendor", "target", "__pycache__")
        shutil.copytree(EXAMPLES / name, project / name, ignore=ignored)
    command = tmp_path / "deuteron"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deuteron "$@"\n')
    command.chmod(0o755)

    def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
        given = {"cwd": project / "rust", "env": {**os.environ, "DEUTERON": str(command)}}
        done = subprocess.run(["cargo", *arguments, "--offline"], **given, capture_output=True, text=True)
        assert done.returncode == 0 or "panicked" in done.stderr, done.stderr
        return done

    printed = cargo("run", "-q").stdout.splitlines()
    assert "Fresh inference" in cargo("build", "-v").stderr
    assert printed[0].startswith("7 rows of 512, largest difference ") and printed[1] == "algorithm 99: invalid value"
    before = printed[0].split()[-1]
    kernel = project / "cmake" / "kernels" / "norm.py"
    kernel.write_text(kernel.read_text().replace("+ eps", "+ eps + 1.0"))
    assert float(cargo("run", "-q").stdout.split()[6]) > 1e-3 > float(before)
