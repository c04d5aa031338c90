"""`python tools/documents/material.py UNPACKED OUT`: fonts, texts and drawings for the renderer.

UNPACKED contains Debian packages after `dpkg -x` (see the list in tools/documents/README.md). OUT
receives fonts/STYLE-SCRIPT/*, reduced to the characters of the texts, texts/SCRIPT.txt with one
paragraph per line, and drawings/*.png without the files of the test part.
Needs fonttools.
"""

# ruff: noqa: E501 - the tables read better with long lines

from __future__ import annotations

import gettext
import hashlib
import html
import random
import re
import sys
import unicodedata
from pathlib import Path

from PIL import Image

TEXT_BYTES = 420_000  # a script
DRAWING_PIXELS = 160
MOST_COVERED = 0.9  # minimum share of a text's letters that a font must have

# script: (first and last letter of its blocks, languages of the handbook and of the translations)
SCRIPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "latin": (
        "A-Za-zÀ-ɏ",
        ("en-US", "de-DE", "fr-FR", "es-ES", "pl-PL", "it-IT", "cs-CZ", "vi-VN", "tr-TR", "sv-SE"),
    ),
    "cyrillic": ("Ѐ-ӿ", ("ru-RU", "ru", "uk", "bg", "sr")),
    "greek": ("Ͱ-Ͽἀ-῿", ("el-GR", "el")),
    "arabic": ("؀-ۿ", ("ar-MA", "fa-IR", "ar", "fa", "ur")),
    "hebrew": ("֐-׿", ("he",)),
    "devanagari": ("ऀ-ॿ", ("hi", "mr", "ne")),
    "bengali": ("ঀ-৿", ("bn", "bn_IN", "as")),
    "tamil": ("஀-௿", ("ta",)),
    "thai": ("฀-๿", ("th",)),
    "georgian": ("Ⴀ-ჿ", ("ka",)),
    "armenian": ("԰-֏", ("hy",)),
    "japanese": ("぀-ヿ一-鿿", ("ja-JP", "ja")),
    "chinese": ("一-鿿", ("zh-CN", "zh-TW", "zh_CN", "zh_TW")),
    "korean": ("가-힣", ("ko-KR", "ko")),
}
FORTUNES = {"latin": ("", "de", "es", "fr", "it", "pl", "cs", "pt", "sv"), "cyrillic": ("ru", "bg"),
            "arabic": ("ar",), "japanese": ("ja",), "chinese": ("zh_CN", "zh_TW")}  # fmt: skip

_EUROPE = ("latin", "cyrillic", "greek")
# style: (scripts, patterns of files); a pattern may stand under several styles
FONTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sans": (_EUROPE, ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "OpenSans-Regular.ttf", "OpenSans-Bold.ttf",
        "OpenSans-CondLight.ttf", "Roboto-Regular.ttf", "Roboto-Bold.ttf", "Roboto-Light.ttf", "Roboto-Italic.ttf",
        "RobotoCondensed-Regular.ttf", "RobotoCondensed-Bold.ttf", "NotoSans-Regular.ttf", "NotoSans-Bold.ttf",
        "NotoSans-Italic.ttf", "liberation2/LiberationSans-*.ttf", "FreeSans.ttf", "FreeSansBold.ttf",
        "Carlito-*.ttf", "GFSNeohellenic.otf")),
    "sans-latin": (("latin",), ("NimbusSans-*.otf", "NimbusSansNarrow-*.otf", "URWGothic-*.otf", "Cantarell-Regular.otf",
        "Cantarell-Bold.otf", "Lato-Regular.ttf", "Lato-Bold.ttf", "Lato-Light.ttf", "Lato-Italic.ttf", "Inter-Regular.otf",
        "Inter-Bold.otf", "Inter-Medium.otf", "LiberationSansNarrow-*.ttf", "LinBiolinum_R.otf", "LinBiolinum_RB.otf",
        "lmsans10-regular.otf", "lmsans10-bold.otf", "Klaudia*.ttf", "ComicNeue-Regular.otf")),
    "serif": (_EUROPE, ("DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "NotoSerif-Regular.ttf", "NotoSerif-Bold.ttf",
        "NotoSerif-Italic.ttf", "liberation2/LiberationSerif-*.ttf", "FreeSerif.ttf", "FreeSerifBold.ttf",
        "LinLibertine_R.otf", "LinLibertine_RB.otf", "LinLibertine_RI.otf", "Charis*-R*.ttf")),
    "serif-latin": (("latin",), ("NimbusRoman-*.otf", "C059-*.otf", "P052-*.otf", "URWBookman-*.otf", "lmroman10-*.otf",
        "lmroman12-*.otf", "lmroman8-regular.otf", "EBGaramond12-*.otf", "Gentium-*.ttf", "Vollkorn-Regular.*",
        "Vollkorn-Bold.*", "Berenika*.ttf", "Cardo98s.ttf", "*oudy*.otf", "lmromancaps10-regular.otf")),
    "old": (("latin",), ("OldStandard-*.ttf", "JunicodeTwoBeta-Regular.otf", "JunicodeTwoBeta-Italic.otf", "*otico*.otf",
        "*otico*.ttf", "Isabella*.ttf", "isabella*.ttf", "EBGaramond08-*.otf")),
    "serif-greek": (("greek",), ("GFSDidot*.otf", "GFSArtemisia*.otf")),
    "mono": (_EUROPE, ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "liberation2/LiberationMono-*.ttf", "Hack-Regular.ttf",
        "Hack-Bold.ttf", "JetBrainsMono-Regular.ttf", "FiraCode-Regular.ttf", "FreeMono.ttf", "FreeMonoBold.ttf")),
    "mono-latin": (("latin",), ("NimbusMonoPS-*.otf", "lmmono10-regular.otf", "lmmonoltcond10-regular.otf", "Inconsolata.otf",
        "mononoki-Regular.ttf")),
    "ocr": (("latin",), ("OCRA.ttf", "OCRABold.ttf", "OCRACondensed.ttf")),
    "hand": (("latin",), ("dkg*.ttf", "Breip.ttf", "femkeklaver.ttf", "Rufscript010.ttf", "Delphine.ttf", "SteveHand.ttf",
        "Z003-MediumItalic.otf", "Humor-Sans.ttf", "Lobster*.otf", "ComicNeue-Italic.otf")),
    "hand-japanese": (("japanese",), ("setofont.ttf", "YOzFont*.?tf")),
    "hand-korean": (("korean",), ("UnPilgi.ttf",)),
    "arabic": (("arabic",), ("Amiri-Regular.ttf", "Amiri-Bold.ttf", "KacstBook.ttf", "KacstOffice.ttf", "KacstNaskh.ttf",
        "KacstTitle.ttf", "KacstOne*.ttf", "NotoNaskhArabic-Regular.ttf", "NotoKufiArabic-Regular.ttf", "NotoSansArabic-Regular.ttf",
        "NotoSansArabic-Bold.ttf", "NotoNastaliqUrdu-Regular.ttf")),
    "hebrew": (("hebrew",), ("DavidCLM-*.otf", "FrankRuehlCLM-*.ttf", "KeterYG-*.ttf", "MiriamCLM-*.ttf", "NachlieliCLM-*.otf",
        "HadasimCLM-*.ttf", "ShofarRegular.ttf", "SimpleCLM-*.ttf", "NotoSansHebrew-Regular.ttf", "NotoSerifHebrew-Regular.ttf",
        "NotoRashiHebrew-Regular.ttf")),
    "devanagari": (("devanagari",), ("Lohit-Devanagari.ttf", "NotoSansDevanagari-Regular.ttf", "NotoSansDevanagari-Bold.ttf",
        "NotoSerifDevanagari-Regular.ttf", "NotoSerifDevanagari-Bold.ttf")),
    "bengali": (("bengali",), ("Lohit-Bengali.ttf", "NotoSansBengali-Regular.ttf", "NotoSerifBengali-Regular.ttf")),
    "tamil": (("tamil",), ("Lohit-Tamil.ttf", "NotoSansTamil-Regular.ttf", "NotoSerifTamil-Regular.ttf")),
    "thai": (("thai",), ("Garuda.ttf", "Garuda-Bold.ttf", "Loma.ttf", "Norasi.ttf", "Norasi-Bold.ttf", "Kinnari.ttf", "Sawasdee.ttf",
        "TlwgMono.ttf", "NotoSansThai-Regular.ttf", "NotoLoopedThai-Regular.ttf", "NotoSerifThai-Regular.ttf")),
    "georgian": (("georgian",), ("NotoSansGeorgian-Regular.ttf", "NotoSerifGeorgian-Regular.ttf")),
    "armenian": (("armenian",), ("NotoSansArmenian-Regular.ttf", "NotoSerifArmenian-Regular.ttf")),
    "japanese": (("japanese",), ("ipag.ttf", "ipamp.ttf", "ipam.ttf", "sawarabi-mincho-medium.ttf", "NotoSansCJK-Bold.ttc",
        "mplus-1p-regular.*")),
    "chinese": (("chinese",), ("uming.ttc", "wqy-zenhei.ttc", "NotoSerifCJK-Regular.ttc", "cwyen.ttf", "cwkai.ttf")),
    "korean": (("korean",), ("NanumGothic.ttf", "NanumMyeongjo.ttf", "NanumSquareR.ttf", "NanumSquareB.ttf", "UnBatang.ttf",
        "NanumGothicCoding.ttf")),
}  # fmt: skip

# Categories whose files mostly have a clear upright direction.
DRAWN = ("animals", "buildings", "people", "plants", "transportation/vehicles", "transportation/boating",
    "food", "recreation/toys", "recreation/music", "recreation/sports", "recreation/holiday", "containers", "office",
    "computer/hardware", "education", "electronics", "tools/toys", "unsorted")  # fmt: skip
WITHOUT_UP = ("geography", "shapes", "people/bodypart", "food/fruit", "animals/bugs")


def is_test_drawing(name: str) -> bool:
    """A fifth of the drawings, chosen by the file's name, is used for tests only."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5 == 0


def main(argv: list[str]) -> int:
    unpacked, out = Path(argv[0]), Path(argv[1])
    only = set(argv[2:]) or {"texts", "fonts", "drawings"}
    if "texts" in only:
        write_texts(unpacked, out / "texts")
    if "fonts" in only:
        write_fonts(unpacked, out)
    if "drawings" in only:
        write_drawings(unpacked, out / "drawings")
    return 0


def write_texts(unpacked: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for script, (letters, languages) in SCRIPTS.items():
        candidates = [
            *_fortunes(unpacked, FORTUNES.get(script, ())),
            *_handbook(unpacked, languages),
        ]
        candidates += _translations(unpacked, languages)
        lines = sorted({line for line in candidates if _is_of(letters, line)})
        random.Random(0).shuffle(lines)
        chosen_lines, size = [], 0
        for line in lines:
            size += len(line.encode()) + 1
            if size > TEXT_BYTES:
                break
            chosen_lines.append(line)
        (out / f"{script}.txt").write_text("\n".join(chosen_lines) + "\n", encoding="utf-8")
        print(script, len(chosen_lines), sum(map(len, chosen_lines)))


def _is_of(letters: str, line: str) -> bool:
    letter_count = len(re.findall(f"[{letters}]", line))
    return letter_count >= 3 and letter_count > 0.6 * sum(
        unicodedata.category(c)[0] in "LM" for c in line
    )


def _clean(text: str) -> str:
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", text))).strip()
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"))


def _fortunes(unpacked: Path, languages: tuple[str, ...]) -> list[str]:
    texts: list[str] = []
    for language in languages:
        for path in sorted((unpacked / "usr/share/games/fortunes" / language).glob("*.u8")):
            if path.stem in ("ascii-art", "art") or path.is_dir():
                continue
            text = path.read_text(encoding="utf-8", errors="ignore")
            texts += [_clean(part)[:600] for part in text.split("\n%\n")]
    return texts


def _handbook(unpacked: Path, languages: tuple[str, ...]) -> list[str]:
    texts: list[str] = []
    for language in languages:
        for path in sorted(
            (unpacked / "usr/share/doc/debian-handbook/html" / language).glob("*.html")
        ):
            text = path.read_text(encoding="utf-8", errors="ignore")
            parts = re.findall(
                r'<(?:p|div class="para"|h\d[^>]*)>(.*?)</(?:p|div|h\d)>', text, flags=re.S
            )
            texts += [_clean(part)[:600] for part in parts]
    return [line for line in texts if len(line) > 8]


def _translations(unpacked: Path, languages: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for language in languages:
        for path in sorted((unpacked / "usr/share/locale" / language / "LC_MESSAGES").glob("*.mo")):
            with path.open("rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            names += [_clean(v) for k, v in catalog.items() if k and v and isinstance(v, str)]
    names = sorted(set(names))
    random.Random(1).shuffle(names)
    texts, at = [], 0
    rng = random.Random(2)
    while at < len(names):  # lists of names as running text
        count = rng.choice((1, 2, 3, 5, 8, 14, 20))
        joint = rng.choice((", ", " ", " – ", "; ", ". "))
        texts.append(joint.join(names[at : at + count]))
        at += count
    return texts


def write_fonts(unpacked: Path, out: Path) -> None:
    from fontTools import subset
    from fontTools.ttLib import TTFont

    everything = {p for p in unpacked.rglob("*") if p.suffix in (".ttf", ".otf", ".ttc")}
    ascii_ = set(map(chr, range(32, 127))) | set("–—‘’“”…•·©§°±×÷€£¥№→←↑↓✓☐☑")
    total = 0
    for style, (scripts, patterns) in FONTS.items():
        wanted = set(ascii_)
        for script in scripts:
            wanted |= set((out / "texts" / f"{script}.txt").read_text(encoding="utf-8"))
        folder = out / "fonts" / style
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(p for p in everything if any(p.match(pattern) for pattern in patterns)):
            target = folder / (path.stem + (".ttf" if path.suffix == ".ttc" else path.suffix))
            if not target.exists():
                try:
                    font = TTFont(path, fontNumber=0)
                    options = subset.Options(
                        layout_features=["*"], hinting=False, notdef_outline=True
                    )
                    cutter = subset.Subsetter(options)
                    cutter.populate(unicodes=[ord(c) for c in wanted])
                    cutter.subset(font)
                    font.save(target)
                except Exception as error:  # a damaged font is skipped and reported
                    print("left out:", path.name, error)
                    continue
            share = coverage(target, [out / "texts" / f"{script}.txt" for script in scripts])
            if share < MOST_COVERED:
                print("left out:", path.name, f"has {share:.2f} of the letters")
                target.unlink()
                continue
            total += target.stat().st_size
        print(style, len(list(folder.iterdir())), total // 1024, "KiB so far", flush=True)


def coverage(font: Path, texts: list[Path]) -> float:
    """The smallest share of a text's letters that the font has."""
    from fontTools.ttLib import TTFont

    present = set(TTFont(font).getBestCmap() or {})
    shares = []
    for text in texts:
        letters = [ord(c) for c in text.read_text(encoding="utf-8") if not c.isspace()]
        shares.append(sum(letter in present for letter in letters) / len(letters))
    return min(shares)


def write_drawings(unpacked: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    root = unpacked / "usr/share/openclipart/png"
    count = 0
    for path in sorted(root.rglob("*.png")):
        place = path.relative_to(root).as_posix()
        if (
            not place.startswith(DRAWN)
            or place.startswith(WITHOUT_UP)
            or is_test_drawing(path.name)
        ):
            continue
        with Image.open(path) as opened:
            drawing = opened.convert("RGBA")
        drawing.thumbnail((DRAWING_PIXELS, DRAWING_PIXELS), Image.Resampling.LANCZOS)
        if min(drawing.size) < 24:
            continue
        drawing.convert("LA").save(out / path.name, optimize=True)
        count += 1
    print("drawings", count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
