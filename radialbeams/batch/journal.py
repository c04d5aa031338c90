"""The record of an unfinished run: its plan, and one line for every batch that is done.

Each batch goes through three steps: its finished outputs are written next to their final places
under temporary names; a line that names them is written to the journal and synced to disk; the
outputs are moved to their final places. So if the run is killed, only the outputs in the last line
may still have to be moved; everything before that line is complete.

The first line holds the settings. A line that is a list is a batch. A line {"again": …} replaces
the outcomes that earlier lines recorded for the same files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from radialbeams.batch import landing, lines, locks, system
from radialbeams.batch.job import RecordedSettings
from radialbeams.batch.landing import OUTSIDE, Rules, writing_in
from radialbeams.batch.locks import JOURNAL, PLAN, JournalError
from radialbeams.batch.outcome import Outcome
from radialbeams.batch.plan import Item, batches
from radialbeams.batch.walk import RUN_FOLDER
from radialbeams.stored import JsonDict

Update = Callable[[RecordedSettings], RecordedSettings]


class Journal:
    """The journal of one run in the folder `home`. Only one run at a time can open it.

    Worker processes inherit `lock`, so that the journal stays locked until the last of them ends.
    `others` are further folders that the run works in. `names` returns whether the plan of this
    run could contain an item. `update` converts settings recorded by an older version.
    """

    def __init__(
        self,
        home: Path,
        settings: RecordedSettings,
        *,
        fresh: bool = False,
        others: Sequence[Path] = (),
        rules: Rules | None = None,
        names: Callable[[Item], bool] = lambda item: True,
        update: Update = lambda noted: noted,
    ) -> None:
        self.home, self.folder = home, home / RUN_FOLDER
        self.done_batches = 0
        self.is_resumed = False
        self._has_failures = False
        self._rules, self._names = rules or Rules(), names
        self._token: str | None = landing.new_token()
        with writing_in(home):
            self._claims = locks.claim(home, others)
        self._file = self._claims[0].file
        try:
            self._begin(settings, update, fresh)
        except BaseException:
            self.close()
            raise

    @property
    def lock(self) -> int:
        return self._file.fileno()

    @property
    def waited_for(self) -> Path | None:
        """The folder of another run that had to end before this one could start, or None."""
        return self._claims[0].after

    def is_in(self, folder: str) -> bool:
        """Whether the run in that folder is this one."""
        own = {os.path.realpath(claim.folder) for claim in self._claims}
        return os.path.realpath(folder) in own

    # --- the plan ---

    def fix_plan(self, items: Iterable[Item]) -> int:
        """Writes the plan unless it exists from an earlier start; returns its number of files."""
        plan = self.folder / PLAN
        if not plan.exists():
            draft = plan.with_suffix(".part")
            draft.unlink(missing_ok=True)
            with writing_in(self.home):
                with open(system.open_new(str(draft), private=True), "wb") as file:
                    file.writelines(map(lines.item_to, items))
                    file.flush()
                    system.sync(file.fileno())
                os.replace(draft, plan)
                system.sync_folder(str(self.folder))
        with self._opened(PLAN) as file:
            return sum(1 for _ in file)

    def batches(self, start: int = 0) -> Iterator[tuple[int, list[Item]]]:
        """Batches with their numbers in the whole plan; each item has its temporary output path."""
        for number, batch in islice(enumerate(batches(self._items())), start, None):
            yield number, [self._placed(item) for item in batch]

    def part_of(self, out: str) -> str:
        return landing.part_of(out, self._token)

    def added(self, paths: Iterable[str], place: Callable[[str], str] = os.path.abspath) -> int:
        """Counts the files that are neither an input nor an output of the plan.

        Paths with the same place are one file. Places are looked up only if some path is unknown.
        """
        planned = {hash(path) for item in self._items() for path in (item.path, item.out)}
        new = {place(path) for path in paths if hash(path) not in planned}
        return len(new - {place(item.path) for item in self._items()} if new else new)

    def _items(self) -> Iterator[Item]:
        path = self.folder / PLAN
        with self._opened(PLAN) as file:
            for line in lines.lines_of(file, path):
                yield lines.item_from(line, path)

    def _placed(self, item: Item) -> Item:
        if item.out is None:
            return item
        if not self._rules.holds(item):
            return Item(item.path, error=OUTSIDE)
        return replace(item, part=self.part_of(item.out))

    # --- what is done ---

    def recover(self) -> int:
        """Completes what a killed run left half done; returns how many batches are done."""
        last, end, done_batches = 0, 0, 0
        with self._opened(JOURNAL) as file:
            for line in lines.lines_of(file, self.folder / JOURNAL):
                if line.endswith(b"\n"):
                    last, end, done_batches = (
                        end,
                        end + len(line),
                        done_batches + line.startswith(b"["),
                    )
            file.seek(last)
            line = file.read(end - last)
        self._check()
        self._file.truncate(end)
        noted = self._outcomes(line) if last else []
        failed = [after for o in noted if (after := self._land_again(o)) is not o]
        self._clear_parts()  # before anything is written: the disk may be full of them
        if failed:
            self._append(_again(failed))
        self.done_batches = done_batches
        return done_batches

    def done(self) -> Iterator[list[Outcome]]:
        """The outcomes of each batch, as last recorded."""
        later = {outcome.path: outcome for line in self._lines(b"{") for outcome in line}
        for outcomes in self._lines(b"["):
            yield [later.get(outcome.path, outcome) for outcome in outcomes]

    def failed(self) -> Iterator[tuple[int, list[Item]]]:
        """The files of each batch that failed; they are tried again when a run is resumed.

        A file that changed is not tried again: it may have been turned before it was edited.
        """
        plan = enumerate(batches(self._items()))
        for (number, batch), outcomes in zip(plan, self.done(), strict=False):
            items = [
                self._placed(item)
                for item, outcome in zip(batch, outcomes, strict=True)
                if outcome.error is not None and not outcome.changed
            ]
            if items:
                yield number, items

    def record(self, outcomes: Sequence[Outcome], *, again: bool = False) -> list[Outcome]:
        """Records a batch, moves its outputs to their places, and returns the final outcomes."""
        self._append(_again(outcomes) if again else [outcome.fields() for outcome in outcomes])
        self.done_batches += not again
        self._has_failures |= any(outcome.error is not None for outcome in outcomes)
        landed = [self._land(outcome) for outcome in outcomes]
        for folder in {os.path.dirname(o.out or "") for o in outcomes if o.sha256}:
            system.sync_folder(folder)
        failed = [now for now, before in zip(landed, outcomes, strict=True) if now is not before]
        if failed:
            self._append(_again(failed))
        return landed

    # --- the end ---

    def finish(self) -> None:
        """Removes the plan and the journal."""
        if self._has_failures:  # a worker that died may have left a temporary output
            self._clear_parts()
        locks.forget(self._claims[0])
        self.close()

    def close(self) -> None:
        for claim in self._claims[1:]:
            claim.give_up()
        self._file.close()

    # --- internals ---

    def _begin(self, settings: RecordedSettings, update: Update, fresh: bool) -> None:
        # Without a plan, no run was started; without a journal, the run was completed.
        is_unfinished = (self.folder / PLAN).exists() and not self._claims[0].is_new
        if is_unfinished and not fresh:
            self._go_on(settings, update)
            return
        if is_unfinished:
            self._clear_old_parts()
        (self.folder / PLAN).unlink(missing_ok=True)
        self._file.truncate(0)
        self._append({"settings": settings, "token": self._token})

    def _go_on(self, settings: RecordedSettings, update: Update) -> None:
        noted, self._token = self._header()
        noted = update(noted)
        if noted != settings:
            raise JournalError(difference(self.home, noted, settings))
        self.is_resumed = True

    def _clear_old_parts(self) -> None:
        """Removes the temporary outputs of an earlier run that is to be forgotten."""
        token = self._token
        with suppress(JournalError):  # an unreadable journal does not say which outputs to remove
            _, self._token = self._header()
            self._check()
            self._clear_parts()
        self._token = token

    def _header(self) -> tuple[RecordedSettings, str | None]:
        with self._opened(JOURNAL) as file:
            line = next(lines.lines_of(file, self.folder / JOURNAL), b"")
        return lines.header_from(line, self.folder / JOURNAL)

    def _check(self) -> None:
        """Checks every line: plan and journal must belong together and to this command."""
        later = {o.path: o.out for line in self._lines(b"{") for o in line}
        plan = batches(self._items())
        for outcomes in self._lines(b"["):
            items = next(plan, [])
            if [o.path for o in outcomes] != [item.path for item in items]:
                raise lines.damaged(self.folder / JOURNAL)
            for outcome, item in zip(outcomes, items, strict=True):
                self._check_item(item)
                if not {outcome.out, later.pop(item.path, None)} <= {None, item.out}:
                    raise lines.damaged(self.folder / JOURNAL)
        if later:
            raise lines.damaged(self.folder / JOURNAL)
        for items in plan:
            for item in items:
                self._check_item(item)

    def _check_item(self, item: Item) -> None:
        if not self._names(item):
            raise lines.damaged(self.folder / PLAN)

    def _lines(self, start: bytes) -> Iterator[list[Outcome]]:
        """The outcomes of the lines that begin with `start`; an incomplete last line is ignored."""
        with self._opened(JOURNAL) as file:
            for line in islice(lines.lines_of(file, self.folder / JOURNAL), 1, None):
                if not line.endswith(b"\n"):
                    return
                if line[:1] not in (b"[", b"{"):
                    raise lines.damaged(self.folder / JOURNAL)
                if line.startswith(start):
                    yield self._outcomes(line)

    def _outcomes(self, line: bytes) -> list[Outcome]:
        return lines.outcomes_from(line, self.folder / JOURNAL)

    def _opened(self, name: str) -> IO[bytes]:
        path = self.folder / name
        try:
            return open(system.open_own(str(path)), "rb")
        except system.Untrusted as error:
            raise locks.not_trusted(path) from error

    def _land(self, outcome: Outcome) -> Outcome:
        part = "" if outcome.out is None else self.part_of(outcome.out)
        return landing.land(outcome, part, self._rules)

    def _land_again(self, outcome: Outcome) -> Outcome:
        if outcome.out is not None and outcome.sha256 is not None:
            outcome = landing.verified(outcome, self.part_of(outcome.out))
        return self._land(outcome)

    def _clear_parts(self) -> None:
        """Removes temporary outputs that were never recorded, or recorded but never moved."""
        parts: dict[str, set[str]] = {}  # by folder: listing one is cheaper than checking each file
        for item in self._items():
            if item.out is None:
                continue
            folder = os.path.dirname(item.out)
            if folder not in parts:
                parts[folder] = landing.parts_in(folder)
            if not parts[folder]:
                continue
            part = self.part_of(item.out)
            if os.path.basename(part) in parts[folder] and self._rules.holds(item):
                landing.discard(part)

    def _append(self, content: Any) -> None:
        rest = memoryview(lines.written(content))
        with writing_in(self.home):
            while rest:  # the system may write less than all of it at a time
                rest = rest[self._file.write(rest) :]
            system.sync(self._file.fileno())


def _again(outcomes: Iterable[Outcome]) -> JsonDict:
    return {"again": [outcome.fields() for outcome in outcomes]}


def difference(home: Path | str, old: RecordedSettings, new: RecordedSettings) -> str:
    """The error message for a command whose settings differ from those of the unfinished run."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    changes = "; ".join(
        f"{lines.plain(name)} was {lines.plain(old.get(name))}, is {lines.plain(new.get(name))}"
        for name in names[:20]
    )
    return (
        f"{home} holds an unfinished run with other settings ({changes}). "
        "Repeat the earlier command to finish it, or add --fresh to discard it and start over."
    )
