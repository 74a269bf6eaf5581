"""Words and made-up names, and the small template language that all generators share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random


def words(text: str, between: str | None = None) -> list[str]:
    """A list written as one text, which reads better than a column of quotes."""
    return text.split(between)


ONSETS = words("b br c d dr f fl g gr h j k l m n p pr r s st t tr v w y z sh th")
VOWELS = words("a e i o u a e i o ia ea ei")
CODAS = ["", "", "", "l", "n", "r", "s", "m", "th", "k", "nd", "rt"]
PLACE_ENDS = words("ford ton wick dale bury ham field mouth stead port bridge holm")
GROUP_ENDS = words("Club|Society|Council|Company|Institute|Trust|Union|Workshop|Library|Museum|Team|Agency", "|")

ITEMS = words(
    "pencil apple marble stamp coin shell button candle basket lantern ribbon brick muffin lemon ticket poster "
    "book tile "
    "bottle jar blanket spoon kite drum bead carrot melon peach plum cookie sticker badge card map brush rope bucket "
    "feather nail plate cup hat scarf glove boat whistle bell flower seed mushroom pumpkin radish onion pear walnut"
)
CONTAINERS = words("box bag crate basket tray shelf drawer packet sack chest bin case")
ANIMALS = words("fox otter heron badger hare owl goat crow mole beaver lynx turtle sparrow donkey hedgehog weasel")
ADJECTIVES = words(
    "red small heavy bright quiet old golden narrow broken round cold warm early late rare plain green silver dusty "
    "hidden empty gentle sharp blue pale tall short curious wooden crooked faded mossy"
)
THINGS = words(
    "lantern|compass|silver key|wooden flute|torn map|music box|glass marble|copper bell|paper boat|brass telescope|"
    "clay whistle|red umbrella|pocket watch|blue feather|letter|painted mask|stone egg|tin soldier|velvet coat|"
    "ladder|violin|walnut shell|broken clock|woollen hat|green bottle|tiny door|iron ring|kite",
    "|",
)
SETTINGS = words(
    "harbour|mill|old orchard|lighthouse|market square|mountain hut|river bend|clock tower|bakery|empty station|"
    "library|glass house|quarry|ferry|walled garden|windmill|bridge|attic|boathouse|pine forest|salt marsh|cellar",
    "|",
)
JOBS = words("baker carpenter teacher sailor gardener miller nurse painter tailor farmer printer clockmaker")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
IDENT_NOUNS = words(
    "price order crate user score word file row node color route ticket page level value point item step label task "
    "event light frame slot weight length speed count height width reading sample message token record batch room "
    "parcel invoice signal sensor student letter player lamp cell track"
)
IDENT_VERBS = words(
    "keep find count collect sum scale merge check build pick filter load read mark clean sort group join trim "
    "measure "
    "format split double limit update convert adjust"
)


@dataclass
class Example:
    """One task: what is asked, what is answered, and the pieces of the prompt that the answer must repeat."""

    category: str
    kind: str
    prompt: str
    answer: str
    slots: list[str] = field(default_factory=list)


_BRACES = re.compile(r"\{([^{}]*)\}")


def say(rng: Random, template: str, **values: object) -> str:
    """Fill `{name}` from values and `{a|b|c}` by chance, innermost first."""

    def fill(match: re.Match[str]) -> str:
        inner: str = match.group(1)
        if "|" in inner:
            return rng.choice(inner.split("|"))
        return str(values[inner])

    while _BRACES.search(template):
        template = _BRACES.sub(fill, template)
    return template


def cap(text: str) -> str:
    """The text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def syllables(rng: Random, count: int) -> str:
    """A made-up word of `count` syllables."""
    parts = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count)]
    return "".join(parts) + rng.choice(CODAS)


def person(rng: Random) -> str:
    """A made-up first name."""
    return cap(syllables(rng, rng.choice((1, 2, 2, 2, 3))))


def people(rng: Random, count: int) -> list[str]:
    """That many different first names."""
    names: list[str] = []
    while len(names) < count:
        name = person(rng)
        if name not in names:
            names.append(name)
    return names


def place(rng: Random) -> str:
    """A made-up town."""
    return cap(syllables(rng, rng.choice((1, 1, 2)))) + rng.choice(PLACE_ENDS)


def group(rng: Random) -> str:
    """A made-up organisation."""
    return f"{cap(syllables(rng, 2))} {rng.choice(GROUP_ENDS)}"


def plural(noun: str) -> str:
    """The regular plural."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    if noun == "shelf":
        return "shelves"
    return noun + "s"


def article(noun: str) -> str:
    """The noun with `a` or `an`."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun
