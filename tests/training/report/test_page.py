from __future__ import annotations

from pathlib import Path

from radialbeams.training.report import Findings, write_report


def test_x(findings: Findings, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", findings)
    (Path("/tmp/first.html")).write_text((tmp_path / "r.html").read_text())
