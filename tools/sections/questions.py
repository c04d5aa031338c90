"""Section: the paper's questions, each answered in one line from the results of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sections.text import Record, section

# Takes the records of the experiments that it names, in their order, and returns the line.
Answer = Callable[..., str]


class Question(NamedTuple):
    text: str
    experiments: tuple[str, ...]
    answer: Answer


def questions_section(records: Sequence[Record]) -> Iterator[str]:
    by_name = {record["name"]: record for record in records if "data" in record}
    known = [one for one in QUESTIONS if all(name in by_name for name in one.experiments)]
    lines = [
        f"{number}. **{one.text}** {one.answer(*(by_name[name] for name in one.experiments))} "
        f"({', '.join(f'[{name}](#{name})' for name in one.experiments)})"
        for number, one in enumerate(known, 1)
    ]
    if lines:
        yield section(
            "The paper's questions, in ten lines",
            "The paper estimates the angle of a rotated image from radial beams, and reports one "
            "number for each data set. Its *paper-equivalent* degrees are computed from the mean "
            "loss; they are larger than the mean error.",
            "\n".join(lines),
        )


PRINTED = {"coil100": 13.0, "lfw": 12.0}  # paper-equivalent degrees


def _reproduced(record: Record) -> str:
    data = record["data"]["reproduction"]
    ours = {name: data[name]["paper_equivalent"]["mean"] for name in ("coil100", "lfw")}
    near = all(ours[name] < 1.1 * printed for name, printed in PRINTED.items())
    return (
        f"{'Yes' if near else 'No'}: with its optimizer we measure {ours['coil100']:.1f}° on "
        f"COIL-100 and {ours['lfw']:.1f}° on LFW, where it prints 13° and 12°."
    )


def _stair(record: Record, row: str, shown: str = "so2") -> float:
    return float(record["data"]["cells"][row][shown]["mean"]["mean"])


def _lower(record: Record) -> str:
    before, rate = _stair(record, "leakfree-hub"), _stair(record, "leakfree-rate")
    clipped, ring = _stair(record, "leakfree-clipping"), _stair(record, "leakfree-decoder")
    return (
        f"By a tenfold learning rate (mean error {before:.1f}° to {rate:.1f}° on leak-free views), "
        f"one-cycle with clipping ({clipped:.1f}°), and a decoder that rotates with the image "
        f"({ring:.2f}°){_few(record, 'leakfree-hub', 'leakfree-rate', 'leakfree-clipping')}."
    )


def _few(record: Record, *rows: str) -> str:
    least = min(record["data"]["cells"][row]["seeds"] for row in rows)
    return "; most stairs have one seed" if least == 1 else ""


def _leaked(record: Record) -> str:
    views, files = (_stair(record, "paper-decoder", shown) for shown in ("so2", "files"))
    clean, same = (_stair(record, "leakfree-decoder", shown) for shown in ("so2", "files"))
    return (
        f"On its views partly the rotation itself: a ring that is trained on them has {views:.2f}° "
        f"there and {files:.0f}° on turned files; trained on leak-free views it has {clean:.2f}° "
        f"and {same:.2f}°."
    )


def _context(record: Record) -> str:
    rows = ("context-one-cycle-none", "leakfree-clipping", "context-one-cycle-held-sum")
    none, bic, text = (_stair(record, row) for row in rows)
    settled = "One seed each does not settle it: " if _few(record, *rows) else "A little: "
    return (
        f"{settled}{none:.1f}° without it, {bic:.1f}° with that of the pretrained `bic`, "
        f"{text:.1f}° with the one that the text describes, on leak-free views."
    )


def _cyclic(record: Record) -> str:
    counts = record["data"]["answer"]["counts"]
    fresh, drawn = counts["fresh angles for both"], counts["as the authors' code draws"]
    return (
        f"Not with equal draws: with fresh angles for both it is better in {fresh['C_B better']} "
        f"of {sum(fresh.values())} settings. As the authors' code draws angles, anew for C_B and "
        f"once per image for SO(2), it is better in {drawn['C_B better']}."
    )


def _prior(prior: Record, weights: Record) -> str:
    """With the paper's optimizer, and with trainings that converge."""
    cells = {(c["variant"], c["protocol"], c["mode"]): c for c in prior["data"]["cells"]}
    off, full = (
        cells["exact", "paper", mode]["degrees_cyclic"]["mean"] for mode in ("off", "full")
    )
    bug = "No bug" if full > off else "It does not"
    return (
        f"{bug}: without any of the slips in its authors' code, the full prior still has "
        f"{full:.1f}° where training without it has {off:.1f}° (paper-equivalent, the paper's "
        f"optimizer). With a one-cycle schedule: {weights['ours']['a second task, or too heavy']}."
    )


def _lengths(record: Record) -> str:
    cells = {(c["data"], c["length"], c["padding"]): c for c in record["data"]["cells"]}
    short, long = (cells["coil100", length, "zeros"]["degrees"]["mean"] for length in "AC")
    canary = record["data"]["canaries"]["paper-C"]["rho4"][0]
    return (
        f"They lower the error ({short:.1f}° to {long:.1f}° on COIL-100), and they read the border "
        f"of the padding: on white noise ρ₄ is {canary:.2f}, where 0 is chance."
    )


def _orbit(record: Record) -> str:
    cells = record["data"]["cells"]
    trained, before = cells["pretrained"], cells["pretrained, before training"]
    line, earlier = trained["centre"], before["centre"]
    size = max(line["order"], key=int)
    return (
        f"{'Yes' if line['circle'] >= 0.5 else 'No'}: a closed curve (averaged over beams, the "
        f"nearest neighbour is adjacent in {line['order'][size]:.0%} of {int(size):,} directions), "
        f"but a folded one: it scores {line['circle']:.2f} of 1 as a circle "
        f"({earlier['circle']:.2f} before training), and {trained['crossed']:.0%} of the "
        "directions come as near to a far one as to themselves."
    )


def _looked_at(light: Record, saliency: Record) -> str:
    rows = {row["name"]: row["anywhere"]["back"]["mean"] for row in saliency["data"]["rows"]}
    return (
        f"At the light. {light['why'].split('. ')[-1]} Its saliency maps hardly rotate with the "
        f"image (correlation {rows['bic']:.2f} after rotating back; the ring's {rows['ring']:.2f})."
    )


def _samples(record: Record) -> str:
    ours = record["ours"]
    said = []
    for rival in ("a CNN with augmentation", "a C8-equivariant CNN"):
        claim = ours[f"canonicalisation lowers the sample complexity, against {rival}"]
        head, _, figures = claim.partition(": ")
        word = {"confirmed": "Yes", "not confirmed": "no", "in part": "in part"}[head]
        said.append(f"{word} against {rival} ({figures})")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


QUESTIONS = (
    Question("Do its errors reproduce?", ("protocol",), _reproduced),
    Question("How does one get below them?", ("staircase",), _lower),
    Question("What do its networks read?", ("staircase",), _leaked),
    Question("Is the context encoder worth its place?", ("staircase",), _context),
    Question("Is training on C_B better than on SO(2)?", ("beams",), _cyclic),
    Question("Why does the Toeplitz prior hurt?", ("prior", "prior-weight"), _prior),
    Question("Do longer beams help?", ("beam-length",), _lengths),
    Question("Do the embeddings over an orbit form a circle?", ("topology",), _orbit),
    Question("What does the network look at?", ("light", "saliency"), _looked_at),
    Question("Does canonicalization save training images?", ("samples",), _samples),
)
