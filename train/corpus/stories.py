"""Writing: little stories, letters, descriptions, notices and diary entries from banks of sentences."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.corpus.words import (
    ADJECTIVES,
    ANIMALS,
    DAYS,
    ITEMS,
    JOBS,
    SETTINGS,
    THINGS,
    Example,
    article,
    cap,
    people,
    place,
    plural,
    say,
)

CATEGORY = "writing"

STARTS = [
    "{One|On a} {adj} {morning|evening|night}, {{article} called {who}|the {kind} {who}} {walked|came|went} "
    "{to|through|past} the {spot}.",
    "{who} {was|had always been} {the most shy|the bravest|the most patient|a lonely|a cheerful} {kind} "
    "{near|at} the {spot}.",
    "Nobody {near|by} the {spot} {knew|had met} {who}, a rather {adj2} {kind} {with|who had} {a soft "
    "voice|tired feet|a long scarf|no home}.",
    "{Long ago|Last winter|Every spring}, {who} the {kind} {lived|slept|worked} {beside|behind|under} the {spot}.",
    "The {spot} was {quiet|dark|cold|full of wind} when {who} the {kind} {arrived|woke up|came home}.",
]
FINDS = [
    "{There|Under a bench|Behind a wall|In the dust|Between two stones} {lay|was|stood} {thing}{, half covered "
    "by leaves|, and it shone|}.",
    "{Then|Suddenly|At noon} {who} {saw|noticed|stepped on} {thing}{ in the grass|, wet from the rain|}.",
    "{who} {had looked for|dreamed of|lost} {thing} {for years|all summer|as a child}{, and here it was|}.",
    "{A gust of wind|A passing cart|A kind stranger} {had left|dropped} {thing} {by the door|on the path|at the gate}.",
]
MIDDLES = [
    "It {felt|was} {heavier|warmer|lighter} than it looked, and {it hummed a little|something moved inside|it "
    "smelled of the sea}.",
    '"{Whose is this|Who left you here|What a find}?" {asked|whispered|said} {who}{, but nobody answered|}.',
    "{The owner|An old {job}|A child} {came by|had cried about it|wanted it back}, {and they talked until "
    "dark|so {who} listened}.",
    "{who} {hid it|carried it|wrapped it} {in a coat|under one arm|in soft paper} and {ran home|sat down to "
    "think|climbed the stairs}.",
    "{All day|For an hour|Until sunset} {who} {turned it over|cleaned it|showed it to everyone}, {and learned "
    "its secret|but it kept silent}.",
    "The {animal} from next door {laughed|shook its head|offered to help}{, then fell asleep|}.",
]
ENDS = [
    "{Since then|From that day on}, {the lights burn late there|nobody walks past without a greeting|the two "
    "are friends}.",
    "{In the end|That night} {who} {gave it back|kept it|hung it by the window} and {slept well|smiled|felt "
    "less alone}.",
    "And {sometimes|on clear nights}, {you can still hear it|a small light shines|{who} tells the tale}.",
    "{who} {never|did not} {told anyone|asked again}{, and that was enough|}.",
]


def _finish(
    rng: Random, sort: str, ask: str, lines: list[str], slots: list[str], joint: str = " ", **values: object
) -> Example:
    answer = joint.join(say(rng, line, **values) for line in lines)
    return Example(CATEGORY, sort, say(rng, ask, **values), answer.replace("\n ", "\n").replace(" \n", "\n"), slots)


def _story(rng: Random) -> Example:
    kind = rng.choice(ANIMALS + JOBS)
    thing = rng.choice(THINGS)
    who = people(rng, 1)[0]
    lines = [rng.choice(STARTS), rng.choice(FINDS), *rng.sample(MIDDLES, rng.choice((1, 2))), rng.choice(ENDS)]
    ask = (
        "{Write|Tell me|Please write|Make up} a {short|little|very short} {story|tale} about {{article} "
        "called|the {kind}} {who} "
        "{who finds|and|who meets a stranger with|who loses} {thing}{.| near the {spot}.}"
    )
    return _finish(
        rng,
        "story",
        ask,
        lines,
        [who],
        who=who,
        kind=kind,
        article=article(kind),
        thing=article(thing),
        adj=rng.choice(ADJECTIVES),
        adj2=rng.choice(ADJECTIVES),
        spot=rng.choice(SETTINGS),
        job=rng.choice(JOBS),
        animal=rng.choice(ANIMALS),
    )


def _letter(rng: Random) -> Example:
    one, two = people(rng, 2)
    item = rng.choice(THINGS)
    lines = [
        "Dear {two},\n",
        "{Thank you|Many thanks} for the {item}{. It arrived on {day}.|, which came on {day}.| that you sent me.}",
        "{It stands|I keep it|It has its place} {on my desk|by the window|in the kitchen}{, where I see it "
        "every morning|, and it makes me smile|}.",
        "{Here in {town}|In {town}|At home in {town}} {the weather is {adj}|everything is {adj}|the days are "
        "{adj}}{, but I am well|, and the garden grows|}.",
        "{Please visit|Come and see me|Write to me} {soon|when you can|before winter}{, and bring your {animal}|}.",
        "\n{Yours|With love|Warm greetings|Best wishes},\n{one}",
    ]
    ask = (
        "{Write|Please write|Draft} a {thank-you letter|short letter|letter of thanks} from {one} to {two} "
        "{about|for} the {item}{.| from {town}.}"
    )
    return _finish(
        rng,
        "letter",
        ask,
        lines,
        [one, two, item],
        one=one,
        two=two,
        item=item,
        day=rng.choice(DAYS),
        town=place(rng),
        adj=rng.choice(ADJECTIVES),
        animal=rng.choice(ANIMALS),
    )


def _describe(rng: Random) -> Example:
    town, thing = place(rng), rng.choice(THINGS)
    lines = [
        "{The {spot} of {town} {is|looks} {adj} and {adj2}|{town} has a very {adj} {spot}}{, most of all in the "
        "rain|, as if time had stopped|}.",
        "{Its walls|The stones|Its steps} are {worn|covered with moss|painted white|warm from the sun}{, and "
        "{animals} nest in the roof|}.",
        "{In the morning|At night|On {day}s} {it smells of bread|you hear bells|fog comes from the river|the "
        "{jobs} meet here}.",
        "{{thinga} hangs over the door|Someone left {thingb} on the sill|{An old {job}|A young {job}} sells "
        "{items} there}{, as ever|}.",
        "{People come|Visitors come|I go there} {to be alone|to look at the sky|to remember|for the silence}.",
    ]
    ask = "{Describe|Write a description of|Paint in words} the {spot} {of|in} {town}{.| in a few sentences.|, please.}"
    return _finish(
        rng,
        "describe",
        ask,
        lines[:1] + sorted(rng.sample(lines[1:], 3), key=lines.index),
        [town],
        town=town,
        spot=rng.choice(SETTINGS),
        adj=rng.choice(ADJECTIVES),
        adj2=rng.choice(ADJECTIVES),
        day=rng.choice(DAYS),
        animals=plural(rng.choice(ANIMALS)),
        jobs=plural(rng.choice(JOBS)),
        job=rng.choice(JOBS),
        thinga=cap(article(thing)),
        thingb=article(thing),
        items=plural(rng.choice(ITEMS)),
    )


def _notice(rng: Random) -> Example:
    who, town = people(rng, 1)[0], place(rng)
    item, price = rng.choice(ITEMS), str(rng.randint(2, 90))
    lines = [
        "{For sale|New in {town}|Only this week}: {adj} {items} from {who}!",
        "{Each {item} is made by hand|Every {item} is checked twice|No {item} is like another}{, with care|, in "
        "a small workshop|}.",
        "{They last for years|They make fine gifts|Children love them|They fit in any pocket}{, and they never "
        "fade|, rain or shine|}.",
        "{One costs|You pay} only {price} coins{.| a piece.| for two.}",
        "{Ask for {who}|Find us|Come} {at the {spot}|on {day}|before noon}{, and take a friend along|}.",
    ]
    ask = (
        "{Write|Create|I need} {an advert|a notice|a short ad} for {who}, who sells {adj} {items} {in "
        "{town}|for {price} coins}{.|, please.}"
    )
    return _finish(
        rng,
        "notice",
        ask,
        lines,
        [who, item],
        who=who,
        town=town,
        item=item,
        items=plural(item),
        price=price,
        adj=rng.choice(ADJECTIVES),
        spot=rng.choice(SETTINGS),
        day=rng.choice(DAYS),
    )


def _diary(rng: Random) -> Example:
    who, friend = people(rng, 2)
    job = rng.choice(JOBS)
    lines = [
        "{day}. {Today was {adj}|Such {adj} weather|A rather {adj} day}{ again|}.",
        "{I got up early|I slept badly|I missed breakfast}{ and went to|, then walked to} the {spot}{, still "
        "yawning|}.",
        "{friend} {was already there|came late|brought {items}|told me a joke}, {so we worked side by side|and "
        "we laughed a lot|but I said little}.",
        "{At noon|Later|In the afternoon} {we found {thing}|it rained|{a|the} {animal} stole my lunch}{, of all "
        "things|}.",
        "{Being|To be} {article} {is hard|is not easy|makes me happy}, {but I would not change it|and tomorrow "
        "I rest|yet I am proud}.",
    ]
    ask = (
        "{Write|Make up|Please write} a diary {entry|page} {of|for} {who}, {article} {who works with|and a "
        "friend of} {friend}{.| at the {spot}.}"
    )
    return _finish(
        rng,
        "diary",
        ask,
        lines,
        [friend],
        who=who,
        friend=friend,
        article=article(job),
        day=rng.choice(DAYS),
        adj=rng.choice(ADJECTIVES),
        spot=rng.choice(SETTINGS),
        items=plural(rng.choice(ITEMS)),
        thing=article(rng.choice(THINGS)),
        animal=rng.choice(ANIMALS),
    )


PIECES: list[Callable[[Random], Example]] = [_story, _story, _letter, _describe, _notice, _diary]


def piece(rng: Random) -> Example:
    """One piece of writing of a random kind."""
    return rng.choice(PIECES)(rng)
