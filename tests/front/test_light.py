"""Without torch, the error says what to install."""

from __future__ import annotations

import subprocess
import sys


def test_without_torch_the_import_says_how_to_install_it() -> None:
    program = "import sys; sys.modules['torch'] = None; import radialbeams.front"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = run.stderr.strip().splitlines()[-1]
    assert "radialbeams.front needs torch, which the light install leaves out" in last
    assert 'pip install -c constraints.txt -e ".[train]"' in last
