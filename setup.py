"""Puts the workflow, its configurations and the recorded runs into the wheel, so that an installed
package has them too.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
FOLDERS = ("workflow", "config", "studies", "results")
LEFT_OUT = (ROOT / "feddep" / "left_out.txt").read_text().split()


class BuildWithWorkflow(build_py):
    """Builds the package, and copies the folders of the project below ``feddep/project``, side by
    side as they are here.
    """

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # there the folders of the repository are used
            for name in FOLDERS:
                target = Path(self.build_lib, "feddep", "project", name)
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(
                    ROOT / name,
                    target,
                    symlinks=False,
                    ignore=shutil.ignore_patterns(*LEFT_OUT),
                )


BUILD = TemporaryDirectory()  # so that nothing is left in the clone
setup(cmdclass={"build_py": BuildWithWorkflow}, options={"build": {"build_base": BUILD.name}})
