"""The sentences with figures in README and docs, made from the results that they are about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from conftest import ROOT

from radialbeams import zoo
from radialbeams.cards import to_json
from radialbeams.documents import FOLDER

Sentences = Callable[[], Iterator[str]]


def result(name: str) -> Any:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def card(name: str) -> Any:
    return to_json(zoo.find(name).card)


def documents_card() -> Any:
    return json.loads((FOLDER / "quarter.json").read_text(encoding="utf-8"))


# --- README ---


def the_ring_against_the_papers_network() -> Iterator[str]:
    cells = result("staircase")["data"]["cells"]
    ring, bic = (cells[name] for name in ("leakfree-decoder", "leakfree-batch"))
    assert ring["seeds"] == bic["seeds"] == 5
    shown = [f"{one['so2']['mean']['mean']:.2f}°" for one in (ring, bic)]
    yield (
        f"its mean error is {shown[0]} where that of the paper's network is {shown[1]} "
        "(five seeds each"
    )


def the_papers_figures_its_authors_weights_and_ours() -> Iterator[str]:
    claimed, weights = result("protocol")["paper"], result("authors")
    ours, sets = result("protocol")["data"]["reproduction"], ("coil100", "lfw")
    printed = [claimed[f"paper-equivalent error, {name}"] for name in ("COIL-100", "LFW")]
    measured = " and ".join(f"{weights[data]['paper_equivalent']:.1f}°" for data in sets)
    repeated = " and ".join(f"{ours[data]['paper_equivalent']['mean']:.1f}°" for data in sets)
    yield f"The paper claims {printed[0]} (COIL-100) and {printed[1]} (LFW)"
    yield f"its authors' own weights measure {measured}, and"
    yield f"with the paper's optimizer we measure {repeated}, all as"


def what_a_classifier_gains() -> Iterator[str]:
    gap, models = result("gap"), result("gap")["models"]
    general, ring = (models[name]["accuracy"] for name in ("general", "ring"))
    yield f"classifies {general['plain']:.1%} of {gap['n']:,} ImageNet photos"
    yield f"{general['ceiling']:.1%} when they are turned back by the true angle"
    yield f"it classifies {general['decides']:.1%} by default"
    yield f"{general['always']:.1%} with `abstain=None`"
    yield f"{general['likely_turns']:.1%} averaged over the likely quarter turns"
    yield (
        f"with `ring`, {ring['decides']:.1%} and {ring['always']:.1%} of the "
        f"{models['ring']['n']} photos that are not among its training photos"
    )


def what_an_average_over_turns_gains() -> Iterator[str]:
    ways = result("gap-parts")["rows"]
    views, quarters = ways["four views"], ways["four views, right quarter given"]
    large = 1 - views["within_45"]
    tenths = 10 * (quarters["within_10"] - views["within_10"]) / large
    yield f"{tenths:.0f} in 10 errors of more than 45° are within 10° of a quarter turn"
    gap, general = result("gap"), result("gap")["models"]["general"]
    accuracy, upright = general["accuracy"], general["upright"]
    yield f"On {gap['n']:,} ImageNet photos at random angles"
    yield f"{accuracy['always']:.1%} with one turn and {accuracy['likely_turns']:.1%} with the"
    yield f"it runs {general['runs_of_the_classifier']['likely_turns']} times per photo"
    yield f"by the true angle it would have {accuracy['ceiling']:.1%}"
    yield f"({upright['plain']:.1%} falls to {upright['likely_turns']['accuracy']:.1%})"


def what_the_command_does_with_mixed_files() -> Iterator[str]:
    rows = result("mixed")["rows"]

    def counted(column: str, *kinds: str) -> int:
        return sum(row[column] for row in rows if row["kind"] in kinds)

    quarters = ("photo, exact quarter, JPEG", "photo, exact quarter, PNG")
    cropped = ("photo, any angle, cropped",)
    upright = [row for row in rows if "upright" in row["kind"]]
    files, turned = counted("files", *quarters), counted("turned", *quarters)
    assert turned == counted("right of turned", *quarters)
    moved = [row for row in upright if row["turned"]]
    assert [(row["kind"], row["turned"]) for row in moved] == [("document, upright", 1)]
    yield (
        f"Of {result('mixed')['files']} mixed files, {sum(row['files'] for row in upright)} were "
        "upright, and one of these was turned: a receipt, by the "
        f"{moved[0]['median error of turned']}° with which it was scanned"
    )
    yield f"of {files} photos turned by exactly 90°, 180° or 270°, {turned} were turned back, all"
    yield f"{files - turned} were left alone"
    yield (
        f"Of {counted('files', *cropped)} photos turned by other angles and cropped, so that no "
        f"corner shows it, {counted('upright after', *cropped)} came out upright"
    )
    pages = ("document, exact quarter", "document, any angle, enlarged canvas")
    files, upright_after = counted("files", *pages), counted("upright after", *pages)
    yield f"Of {files} turned documents, {upright_after} came out upright"


def how_little_the_views_leak() -> Iterator[str]:
    places = (ROOT / "results" / "leaks").glob("leakfree-*.json")
    leaks = [json.loads(place.read_text(encoding="utf-8")) for place in places]
    yield f"(|ρ₄| ≤ {max(abs(leak['rho4']) for leak in leaks):.2f})"


def what_everyday_photos_come_to() -> Iterator[str]:
    general, ring = card("general"), card("ring")
    files, turned = general["end_to_end"], general["end_to_end"]["turned"]
    cost = [one["cost"]["milliseconds_a_view_one_cpu_thread"] for one in (ring, general)]
    assert 0.5 <= cost[0] / cost[1] < 0.6, "a little more than half the time"
    yield f"a small model for everyday photos ({general['parameters'] / 1e6:.0f} M parameters)"
    yield f"{files['within_10']:.0%} of its estimates are within 10°"
    yield f"half are within {files['median']:.1f}°"
    yield (
        "Of photos that were cut out of rotated ones without a canvas, "
        f"{files['inner']['within_10']:.0%} are within 10°"
    )
    yield f"of the more confident half {files['surer_half_within_10']:.1%} are within 10°"
    yield f"`upright` acts on {turned['acted_on']:.0%} of these rotated files"
    yield f"{turned['acted_on_within_5']:.0%} of those end within 5°"
    yield f"Of the upright photos {files['upright']['worse_than_it_came']:.1%} come out worse"
    yield (
        f"`ring` ({ring['parameters'] / 1e6:.0f} M parameters, a little more than half the time "
        "for a view) is equivariant by construction, and less accurate on photos "
        f"({ring['end_to_end']['within_10']:.0%} within 10°)"
    )


def what_the_surest_files_look_like() -> Iterator[str]:
    found = result("surest-wrong")
    wrong = len(found["wrong"])
    yield (
        f"Of these, {wrong} count as wrong, none by more than {ceil(found['largest_error'])}°; "
        f"{found['tilted']} of the {wrong} photos were taken with a tilted camera"
    )


def what_the_fast_model_does() -> Iterator[str]:
    light, general = card("light"), card("general")
    files = light["end_to_end"]
    cost = [one["cost"]["milliseconds_a_view_one_cpu_thread"] for one in (light, general)]
    assert 0.3 <= cost[0] / cost[1] < 0.4, "a third of the time"
    yield f"`light` ({light['parameters'] / 1e6:.1f} M parameters) takes a third of the time"
    yield (
        f"On the same files {files['within_10']:.0%} of its estimates are within 10°, and "
        f"{files['inner']['within_10']:.0%} on photos cut out without a canvas"
    )
    yield (
        f"acts on {files['turned']['acted_on']:.0%} of the rotated files: "
        f"{files['turned']['acted_on_within_5']:.0%} of those end within 5°"
    )


def how_the_fast_model_looks_at_both_ends() -> Iterator[str]:
    found = result("ends-light")
    new, old = (found["rows"][found[name]] for name in ("shipped", "before"))
    yield (
        f"gives {new['within_10']:.1%} within 10° with {new['views']:.2f} views, where quarter "
        f"turns below a confidence of 0.8 give {old['within_10']:.1%} with {old['views']:.2f}"
    )


def how_long_the_students_were_trained() -> Iterator[str]:
    found = result("students")
    light = next(row for row in found["rows"] if row["model"] == "light")
    yield f"on {found['training_images']:,} photos of COCO train2017"
    yield f"{light['training_views'] / 1e6:.1f} million views in {light['minutes']} minutes"


def what_the_lines_in_a_photo_would_do() -> Iterator[str]:
    rule = result("straightening")["best"]["2.0%"]
    yield (
        f"a rule that makes {rule['upright_worse']:.1%} of upright photos worse puts only "
        f"{rule['tilted_right']:.0%} of those tilted by 2° to 10° right"
    )


# --- docs ---


def what_the_module_makes_of_corners() -> Iterator[str]:
    found = result("module-corners")
    enlarged, own = (found["within_10"][canvas] for canvas in ("enlarged", "its own"))
    yield (
        f"With `{found['model']}`, on {found['photos']} photos that were rotated with black "
        f"corners, {enlarged['command']:.0%} of the commands' angles and {enlarged['module']:.0%} "
        f"of the module's are within 10° on an enlarged canvas, and {own['command']:.0%} and "
        f"{own['module']:.0%} on the photo's own canvas"
    )


def what_polishing_did_to_the_ring() -> Iterator[str]:
    old, new = result("ring-before-polish"), card("ring")
    coil, photos, files = (
        [one["metrics"]["leakfree_coil100"]["mean"] for one in (old, new)],
        [one["metrics"]["leakfree"]["within_10"] for one in (old, new)],
        [one["end_to_end"] for one in (old, new)],
    )
    yield f"the mean error on COIL-100 from {coil[0]:.2f}° to {coil[1]:.2f}°"
    yield f"({files[0]['within_10']:.1%} before, {files[1]['within_10']:.1%} after)"
    yield f"({photos[0]:.1%} to {photos[1]:.1%})"
    (acted, ends), (more, worse_ends) = (
        (one["turned"]["acted_on"], one["turned"]["acted_on_within_5"]) for one in files
    )
    worse = [one["upright"]["worse_than_it_came"] for one in files]
    yield f"({more:.1%} instead of {acted:.1%})"
    yield f"({worse_ends:.1%} of these end within 5° instead of {ends:.1%}; {worse[1]:.1%}"
    yield f"come out worse instead of {worse[0]:.1%})"


def which_network_is_better_on_objects_and_faces() -> Iterator[str]:
    ring, ours, lfw = (
        card(name)["metrics"]["leakfree"]["mean"]
        for name in ("ring.coil100-objects", "general.coil100-objects", "ring.lfw")
    )
    yield f"{ring:.2f}° (`ring.coil100-objects`) | {ours:.2f}° (`general.coil100-objects`)"
    yield f"{lfw:.2f}° (`ring.lfw`)"
    places = (ROOT / "results" / "leaks" / "short").glob("*.json")
    leaks = [json.loads(place.read_text(encoding="utf-8")) for place in places]
    yield f"(|ρ₄| ≤ {max(abs(leak['rho4']) for leak in leaks):.3f}"


def what_two_turns_decide() -> Iterator[str]:
    found = result("document-turns")
    yield f"Of {found['pages']:,} rendered pages that pass the"
    yield f"the axis of the lines of {found['axis named rightly']}% rightly"
    yield f"two turns decide {found['decided by two turns']}%: {found['views a page']} views a page instead of 4"  # noqa: E501
    assert not found["other best turn"]
    yield f"no probability by more than {found['largest change']}"


def what_two_turns_save() -> Iterator[str]:
    found = result("documents")["two turns"]
    times = {
        name: (found[f"{name} before"], found[f"{name} now"])
        for name in ("receipts", "pages", "screenshots")
    }
    yield "a receipt took {} ms before these two changes and {} ms".format(*times["receipts"])
    yield "a page {} and {} ms".format(*times["pages"])
    yield "and a screenshot {} and {} ms".format(*times["screenshots"])
    yield f"no angle changed by more than {found['largest change of an angle']}°"
    yield f"more than {found['of all others']} except that of one page"


def how_drawings_are_judged() -> Iterator[str]:
    found = result("document-drawings")
    now, before, other = found["test"], found["before"], found[NOT_KEPT]["test"]
    every, old = now["all"], before["all"]

    def error(part: dict[str, Any]) -> tuple[float, float]:
        return part["calibration error"], part["calibration error by chance"][0]

    yield f"On {now['drawings']:,} drawings of the test part, all of the categories"
    yield f"averages {every['confidence, mean']}, and {every['right']}% are right"
    yield "calibration error is {}; on so few files a perfectly calibrated".format(*error(every))
    yield f"would have {error(every)[1]} by\nchance"
    yield "Before, the error was {}, where chance would give {}".format(*error(old))
    taken, left, fewer = (
        part["drawings"] - part["judged as pictures"] for part in (before, now, other)
    )
    yield f"{taken} of the {now['drawings']} were judged as documents"
    yield f"Now it is {left}."
    yield f"The {left} that are judged as documents"
    yield f"Then {fewer} of the {now['drawings']} drawings are judged as documents, and the error"
    yield f"the error is {other['all']['calibration error']}"
    called = documents_card()["no_drawing"]["called_pages"]
    shares = {name: f"{100 * share:.3g}% of {count:,}" for name, (count, share) in called.items()}
    yield f"{shares['drawings']} other drawings, {shares['signs']} signs and\n  icons and"
    yield f"{shares['photos']} photos reach its threshold, and {shares['pages']} renderings do"
    yield f"confidence of at least 0.9, {old['right of these']:g}% were right"
    yield "as pictures have an error of {} now, where chance would give {}, and".format(
        *error(now["pictures"])
    )
    yield f"and {error(before['pictures'])[0]} before"
    yield f"reach 0.9: {every['at least 0.9']}% instead of {old['at least 0.9']:g}%"


def what_counts_as_drawn() -> Iterator[str]:
    drawings, pages, photos = (
        result("document-drawings")["drawn"][name] for name in ("drawings", "pages", "photos")
    )
    yield f"Of {drawings['files']:,} drawings outside the test part\n"
    yield (
        f"{drawings['count as drawn']}% count as drawn, of rendered pages "
        f"{pages['count as drawn']}%, of photos {photos['count as drawn']}%"
    )
    yield f"{drawings['taken for documents']}% are taken for documents by the first score, and"
    yield f"{drawings['called drawings']}% are\ncalled drawings then"
    yield f"of the pages {pages['called drawings']}% are called drawings"


def how_the_listed_drawings_come_out() -> Iterator[str]:
    kept = (ROOT / "tools/documents/test_drawings.txt").read_text(encoding="utf-8").split()
    few = next(row for row in result("documents")["radialbeams"] if row["set"] == "drawings")
    assert len(kept) == few["files"]
    yield f"would have an error of {few['calibration error by chance'][0]} on"
    yield f"these files instead of {few['calibration error']}."
    assert round(few["upright files turned"] * few["files"] / 100) == 2
    yield "Two of the upright ones are turned"


NOT_KEPT = "refitted for documents too, not kept"


def how_fresh_documents_come_out() -> Iterator[str]:
    found = result("documents-fresh")
    rows = {row["set"]: row for row in found["radialbeams"]}
    sources = {one["set"]: one for one in found["sets"]}
    files = found["single files"]
    assert {name: row["files"] for name, row in rows.items()} == {
        name: one["measured"] for name, one in sources.items()
    }
    assert not any(one["removed by eye"] for one in sources.values())
    once = found["at one quarter turn"]["rows"]
    wrong = [sum(row["wrong quarters"][k] for row in once) for k in (0, 1)]
    count = sum(row["files"] for row in once)
    judged = [sum(r["judged as documents"][k] * r["files"] for r in once) / count for k in (0, 1)]
    yield f"{wrong[1]} of the {count} quarters are wrong instead\n  of {wrong[0]}"
    yield f"{judged[1]:.1f}% instead of {judged[0]:.1f}% are judged as documents"
    again = {row["set"]: row for row in found["measured again"]["rows"]}
    share = {name: f"{row['quarter']:g}%" for name, row in again.items()}
    yield (
        f"{share['early prints']} of the quarters are right on early prints, "
        f"{share['manuscripts']} on manuscripts, {share['handwriting']} on handwriting, "
        f"{share['phone photos']} on phone photos, {share['phone apps']} on\nphone apps and "
        f"{share['web pages']} on web pages"
    )
    judged_again = [part["manuscripts"]["judged as documents"] for part in (again, rows)]
    yield f"{judged_again[0]}% are judged as documents instead of {judged_again[1]}%"
    early, photos, written = (
        files[name] for name in ("early prints", "phone photos", "handwriting")
    )
    for name in ("early prints", "manuscripts", "handwriting"):
        assert rows[name]["quarter where acted"] == 100
    yield (
        f"averages {early['mean confidence']} where {rows['early prints']['quarter']}% of the "
        f"quarters are right, and only {rows['early prints']['turned ones acted on']}% of the"
    )
    yield f"The {written['wrong quarters']} wrong quarters of"
    yield f"are on {written['files with wrong quarters']} envelopes"
    yield f"{rows['phone photos']['files']} photos of eleven printed Russian documents"
    yield f"All {photos['wrong quarters']} wrong quarters are on two of these"
    yield f"{photos['of the cover page']} on\n  a cover page"
    yield f"{photos['of the waybill']} on a waybill"
    yield f"with a confidence above {photos['with a confidence above']}"
    yield (
        f"averages {photos['mean confidence']} where {rows['phone photos']['quarter']}% are right"
    )
    yield f"the slope of its lines, {photos['of these by their own tilt']}°"
    yield f"each of {len(sources['phone apps']['repositories'])} Android apps"
    yield f"the upper parts of {rows['web pages']['files']} home pages"
    yield f"by {files['manuscripts']['of these by their own tilt']}°, the tilt of its lines"
    yield f"is judged as a document in {rows['handwriting']['judged as documents']}% of"
    for name, wrong in files.items():  # four turns of each file
        if "wrong quarters" in wrong:
            share = 100 * (1 - wrong["wrong quarters"] / (4 * rows[name]["files"]))
            assert round(share, 1) == rows[name]["quarter"]


def what_more_training_changed() -> Iterator[str]:
    found = result("more-training")
    yield f"{found['minutes']:.0f} more minutes"
    yield f"{found['of_imagenet']:,} photos of ImageNet's validation set"
    rows = {(row["data"], row["model"]): row["four"] for row in found["rows"]}
    places = list(dict.fromkeys(data for data, _ in rows))
    before, after = (
        [rows[place, model] for place in places] for model in ("general", "trained further")
    )
    for words, figure in (("four views", "within_10"), ("surer half", "surer_half_within_10")):
        changes = " and ".join(
            f"{100 * one[figure]:.1f} → {100 * two[figure]:.1f}%"
            for one, two in zip(before, after, strict=True)
        )
        yield f"{words} {changes}"


def what_both_ends_gain() -> Iterator[str]:
    found = result("ends")
    before, after = (found["rows"][found[name]] for name in ("before", "shipped"))
    yield (
        f"within 10° {100 * before['within_10']:.1f} → {100 * after['within_10']:.1f}% with "
        f"{after['views']:.2f} instead of {before['views']:.2f} views"
    )


def what_distilling_changed() -> Iterator[str]:
    found = result("distilled")
    yield (
        f"{found['training_images']:,} training images, of which {found['drawings']:,} are squares"
    )
    name = "average of both and general, a third each"
    rows = {row["model"]: row for row in found["rows"]}
    before, after = rows["general"], rows[name]
    yield (
        f"with one view {before['one']['mean']:.1f} → {after['one']['mean']:.1f}°, with four "
        f"{before['four']['mean']:.1f} → {after['four']['mean']:.1f}°; within 10° with four views "
        f"{100 * before['four']['within_10']:.1f} → {100 * after['four']['within_10']:.1f}%"
    )
    drawn = [found["test_drawings"][model]["all"] for model in ("general", name)]
    yield f"{drawn[0]['right']} → {drawn[1]['right']}% are right"
    yield "from {} to {}".format(*(row["calibration error"] for row in drawn))


def what_an_engine_costs() -> Iterator[str]:
    quiet = result("speed/engines")
    plain, ray = (quiet["model"][engine] for engine in ("plain", "ray"))
    largest = max(quiet["sizes"]["ray"], key=int)
    more = 100 * (ray["each_ms"] / plain["each_ms"] - 1)
    yield f"an image costs Ray {more:.0f}% more processor time than the plain batch"
    yield f"its start costs {ray['start_s']:.0f} s once"
    yield f"that is {100 * quiet['overhead']:.0f}% for {int(largest):,} images, start included"
    yield f"two workers are {quiet['speed_up']:.2f} times as fast"
    busy = [result(f"speed/history/2026-11-18T{time}-engines") for time in BUSY]
    gains, costs = ([run[name] for run in busy] for name in ("speed_up", "overhead"))
    yield (
        f"three runs beside other programs were {min(gains):.2f} to {max(gains):.2f} times as fast "
        f"as one worker, and took {100 * min(costs):.0f} to {100 * max(costs):.0f}% longer"
    )


BUSY = ("174741", "175440", "230606")  # times of runs on Ray beside other programs


RUNS = ("20T010839", "20T010914", "20T010950")  # of the suite, one after the other
EARLIER = ("19T184544", "19T184647", "19T184748")  # on another processor


def what_it_adds_as_one_onnx_file() -> Iterator[str]:
    (one, four), both = (
        [_shares_of_the_classifier(*RUNS, batches=(batch,)) for batch in (1, 4)],
        _shares_of_the_classifier(*EARLIER, batches=(1, 4)),
    )
    yield (
        f"adds {one['ring.coil100']} to the classifier's time for single images and "
        f"{four['ring.coil100']} in batches of 4; `ring` adds {one['ring']} and {four['ring']}"
    )
    yield f"three earlier runs gave {both['ring.coil100']} and {both['ring']} for both batches"


def how_much_faster_than_a_vit() -> Iterator[str]:
    networks = result("speed/history/2026-11-20T011055")["networks"]
    repeated, in_turns = (
        [
            f"1/{1 / networks[group]['ratio'][model]:.0f}"
            for model in ("ring.coil100", "light", "general")
        ]
        for group in ("1 threads, batch 1, in a row", "1 threads, batch 1")
    )
    yield (
        f"takes `ring.coil100` {repeated[0]} of the time, `light` {repeated[1]} and `general` "
        f"{repeated[2]} if each"
    )
    yield f"it is {in_turns[0]}, {in_turns[1]} and {in_turns[2]}"


def what_sampling_takes() -> Iterator[str]:
    runs = [
        result(f"speed/history/2026-11-20T{time}")["sampling"]["CPU"]["ratio"]
        for time in ("011102", "011107", "011113")
    ]
    times = [run["gather"] for run in runs]
    yield f"sampling beams takes {min(times):.1f} to {max(times):.1f} times as long as copying them"
    images = sorted(run["copy of the images"] for run in runs)[1]
    yield f"copying them takes {images:.1f} times"
    both = sorted(run["gather"] / (1 + run["copy of the images"]) for run in runs)
    yield f"sampling takes {both[1]:.1f} times as long as copying images and beams"


def _shares_of_the_classifier(*times: str, batches: tuple[int, ...]) -> dict[str, str]:
    runs = [result(f"speed/history/2026-11-{time}")["front"] for time in times]
    rows = [
        row for run in runs for name, row in run.items() if int(name.rpartition(" ")[2]) in batches
    ]
    ranges = {
        model: [f"{100 * edge(row[f'{model}, share'] for row in rows):.0f}" for edge in (min, max)]
        for model in ("ring.coil100", "ring")
    }
    return {
        model: f"{low}%" if low == high else f"{low} to {high}%"
        for model, (low, high) in ranges.items()
    }


def what_a_gpu_does() -> Iterator[str]:
    parts = result("speed/gpu/h200")
    yield from _rows_of_a_gpu(parts)
    yield from _floors_of_a_gpu(parts)
    yield from _precision_on_a_gpu(parts)
    yield from _shares_on_a_gpu(parts)
    trial = parts["kernels_trial, general, us"]
    many, few = (
        [trial[f"{form}, batch {batch}"] / 1000 for form in ("plain", "kernels")]
        for batch in (4096, 64)
    )
    yield (
        f"from {many[0]:.0f} to {many[1]:.0f} ms for a batch of 4,096, and from {few[0]:.2f} to "
        f"{few[1]:.2f} ms for 64"
    )
    single = parts["trial of our kernels in float32"]
    tried, compiled = (
        [row / 1000 for row in rows]
        for rows in (
            [single[f"{name} float 4096 kernels"]["us"] for name in ("ring", "ring.coil100")],
            [
                parts[f"inference-{name}-float"]["batch 4096"]["compiled"]["us"]
                for name in ("ring", "ring.coil100")
            ],
        )
    )
    yield (
        f"took {tried[0]:.1f} ms with `ring` and {tried[1]:.1f} ms with `ring.coil100`, where the "
        f"compiled networks take {compiled[0]:.1f} and {compiled[1]:.1f} ms"
    )
    step = parts["training-general"]
    yield f"of `general`, {100 * step['rendering_us'] / step['step_us']:.0f}% is rendering"


ON_A_GPU = ("ring.coil100", "ring", "light", "general")


def _on_a_gpu(parts: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Model, precision, the form of the table, and what was measured."""
    for model in ON_A_GPU:
        for precision in ("half", "float"):
            compiled = precision == "float" and model.startswith("ring")
            form = "compiled" if compiled else "plain"
            yield model, precision, form, parts[f"inference-{model}-{precision}"]


def _rows_of_a_gpu(parts: Any) -> Iterator[str]:
    for model, precision, form, part in _on_a_gpu(parts):
        many, one = (part[f"batch {batch}"][form] for batch in (4096, 1))
        speed = float(f"{many['views_per_second']:.3g}")
        yield (
            f"| `{model}` | {'half' if precision == 'half' else 'float32 (TF32)'} | "
            f"{'our kernels' if form == 'plain' else form} | {speed:,.0f} | "
            f"{many['times_floor']:.1f} | {one['us']:.0f} µs |"
        )


def _floors_of_a_gpu(parts: Any) -> Iterator[str]:
    rows = list(_on_a_gpu(parts))
    copies = [part["copy_gb_per_second"] / 1000 for *_, part in rows]
    half, single = (
        [part["product_tflops"] for _, precision, _, part in rows if precision == kind]
        for kind in ("half", "float")
    )
    yield (
        f"{min(copies):.1f} to {max(copies):.1f} TB/s, {min(half):.0f} to {max(half):.0f} TFLOPS "
        f"in half precision and {min(single):.0f} to {max(single):.0f} in float32"
    )
    missed = {
        (model, precision): part["batch 4096"][form]["times_floor"]
        for model, precision, form, part in rows
        if part["batch 4096"][form]["times_floor"] > 3
    }
    assert list(missed) == [("ring.coil100", "float")]
    yield (
        "All models meet it in half precision; in float32, `ring`, `light` and `general` meet it, "
        f"and `ring.coil100` misses it with {missed['ring.coil100', 'float']:.1f} times"
    )
    rings = [
        parts[f"inference-{name}-half"]["batch 4096"]["compiled without our kernels"]
        for name in ("ring.coil100", "ring")
    ]
    general = parts["inference-general-half, without our kernels"]["batch 4096"]["compiled"]
    shown = [f"{row['times_floor']:.1f} times" for row in (*rings, general)]
    yield f"`ring.coil100` takes {shown[0]} the floor, `ring` {shown[1]} and `general` {shown[2]}"


def _precision_on_a_gpu(parts: Any) -> Iterator[str]:
    half = {name: parts[f"inference-{name}-half"]["against_float"] for name in ON_A_GPU}
    share = {name: 100 * part["typical"] for name, part in half.items()}
    rings = max(share["ring"], share["ring.coil100"])
    yield (
        f"on 64 photos its logits differ from exact float32 by {share['light']:.1f}% of their "
        f"deviation (`general`: {share['general']:.1f}%, the rings: at most {rings:.1f}%), and on "
        "one of them another bin is the highest"
    )
    assert [round(64 * (1 - part["same_bin"])) for part in half.values()] == [0, 0, 1, 0]
    single = parts["trial of our kernels in float32"]
    fast, plain = (single[f"general float 64 {form}"] for form in ("kernels", "plain"))
    light, general = (
        parts[f"inference-{name}-float"]["against_float"]["typical"]
        for name in ("light", "general")
    )
    assert fast["typical"] == plain["typical"] == round(general, 4)
    yield (
        f"a batch of 64 takes {fast['us'] / 1000:.2f} ms instead of {plain['us'] / 1000:.2f}, and "
        f"on photos its logits are as far from exact float32 as torch's, by "
        f"{100 * fast['typical']:.2f}% of their deviation (`light`: {100 * light:.2f}%)"
    )


def _shares_on_a_gpu(parts: Any) -> Iterator[str]:
    now, before = (
        {model: f"{100 * share:.0f}%" for model, share in parts[name]["share"].items()}
        for name in ("front-half", "front-half, without our kernels")
    )
    yield (
        f"`ring.coil100` adds {now['ring.coil100']} to its time ({before['ring.coil100']} without "
        f"our kernels), `ring` {now['ring']} ({before['ring']}), `light` {now['light']} and "
        f"`general` {now['general']} ({before['general']})"
    )
    compiled, earlier = (
        parts[name] for name in ("front-half-compiled", "front-half-compiled, earlier kernels")
    )
    shares = {model: compiled["share"][f"{model}, not compiled"] for model in ON_A_GPU}
    both = {model: f"{100 * share:.0f}%" for model, share in shares.items()}
    yield (
        f"`ring.coil100` adds {both['ring.coil100']}, `ring` {both['ring']}, `light` "
        f"{both['light']} and `general` {both['general']}, with our kernels and not compiled"
    )
    assert shares["ring.coil100"] < 0.15
    assert shares["ring"] < 0.3
    yield "15% for `ring.coil100` and 30% for `ring`, are met"
    classifier = [part["us"]["EfficientNet-Lite0"] for part in (earlier, compiled)]
    yield (
        f"took {classifier[0] / 1000:.2f} ms instead of {classifier[1] / 1000:.2f}; of that time, "
        f"`ring` would add {100 * compiled['us']['ring, not compiled'] / classifier[0]:.0f}%"
    )


def what_our_kernels_save_in_front() -> Iterator[str]:
    parts = result("speed/gpu/h200")
    now, before = (parts[name]["us"] for name in ("front-half", "front-half, without our kernels"))
    share = {model: f"{100 * now[model] / before[model]:.0f}%" for model in before}
    yield (
        f"the module with `ring.coil100` then takes {share['ring.coil100']} of the time that it "
        f"takes without them, with `ring` {share['ring']} and with `general` {share['general']}"
    )


PAGES: dict[str, tuple[Sentences, ...]] = {
    "README.md": (
        the_ring_against_the_papers_network,
        the_papers_figures_its_authors_weights_and_ours,
        what_a_classifier_gains,
        what_the_command_does_with_mixed_files,
        how_little_the_views_leak,
        what_everyday_photos_come_to,
        what_the_surest_files_look_like,
        what_the_fast_model_does,
        what_the_lines_in_a_photo_would_do,
    ),
    "docs/in-front-of-your-model.md": (
        what_the_module_makes_of_corners,
        what_an_average_over_turns_gains,
        what_our_kernels_save_in_front,
    ),
    "docs/training.md": (
        how_the_fast_model_looks_at_both_ends,
        how_long_the_students_were_trained,
        what_polishing_did_to_the_ring,
        which_network_is_better_on_objects_and_faces,
        what_more_training_changed,
        what_distilling_changed,
        what_both_ends_gain,
    ),
    "docs/documents.md": (
        what_two_turns_decide,
        what_two_turns_save,
        how_drawings_are_judged,
        what_counts_as_drawn,
        how_the_listed_drawings_come_out,
        how_fresh_documents_come_out,
    ),
    "docs/scale.md": (
        what_an_engine_costs,
        what_it_adds_as_one_onnx_file,
        how_much_faster_than_a_vit,
        what_sampling_takes,
        what_a_gpu_does,
    ),
}
