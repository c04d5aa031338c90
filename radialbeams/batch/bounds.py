"""Where the outputs of a run may lie. A journal that names other places is rejected."""

from __future__ import annotations

import os

from radialbeams.batch.plan import Item, Plan


class Bounds:
    """Checks that the items of a journal stay within the inputs and outputs of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sources = {os.path.abspath(source) for source in plan.sources}
        self._root = os.path.realpath(plan.folder or "")

    def name(self, item: Item) -> bool:
        """Whether this plan could contain the item, judging by the paths alone."""
        if not self._is_input(item.path):
            return False
        if item.out is None:
            return True
        plan, folder = self._plan, os.path.dirname(os.path.abspath(item.out))
        if plan.in_place:
            return item.out == item.path or os.path.islink(item.path)
        if plan.file is not None:
            return item.out == str(plan.file)
        if plan.folder is None:
            return folder == os.path.dirname(os.path.abspath(item.path))
        return _is_below(folder, os.path.abspath(plan.folder))

    def hold(self, item: Item) -> bool:
        """Whether the output lies within the plan's outputs once all links are resolved."""
        plan = self._plan
        if item.out is None or plan.file is not None:
            return True
        if plan.in_place:
            return item.out == item.path or item.out == os.path.realpath(item.path)
        if plan.folder is None:
            return os.path.dirname(item.out) == os.path.dirname(item.path)
        return _is_below(os.path.realpath(os.path.dirname(item.out)), self._root)

    def _is_input(self, path: str) -> bool:
        folder = os.path.abspath(path)
        while folder not in self._sources:
            parent = os.path.dirname(folder)
            if parent == folder:
                return False
            folder = parent
        return True


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))
