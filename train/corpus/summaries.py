"""Texts to summarise; the summary repeats names, numbers and clauses of the text."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.corpus.words import (
    ADJECTIVES,
    DAYS,
    ITEMS,
    JOBS,
    MONTHS,
    SETTINGS,
    THINGS,
    Example,
    article,
    cap,
    group,
    people,
    place,
    plural,
    say,
)

CATEGORY = "summarization"
Fact = tuple[str, list[str]]
"""A clause without its full stop, and the names and numbers in it."""


def _opening(rng: Random) -> list[Fact]:
    who, town, day, year = people(rng, 1)[0], place(rng), rng.choice(DAYS), str(rng.randint(1890, 2024))
    org, count, price = group(rng), str(rng.randint(12, 980)), str(rng.randint(2, 60))
    spot = rng.choice(SETTINGS)
    return [
        (
            say(
                rng,
                "the {org} {opened|will open} {a|its} new {spot} in {town} on {day}",
                org=org,
                spot=spot,
                town=town,
                day=day,
            ),
            [org, town, day],
        ),
        (
            say(
                rng,
                "{who} from {town} {paid for|planned|drew} the {adj} building",
                who=who,
                town=town,
                adj=rng.choice(ADJECTIVES),
            ),
            [who, town],
        ),
        (say(rng, "the {work|building work} {cost|took} {count} {coins|days|hours}", count=count), [count]),
        (say(rng, "{a ticket|entry|a visit} costs {price} {coins|euros|dollars}", price=price), [price]),
        (say(rng, "the old {spot} {closed|burnt down|was sold} in {year}", spot=spot, year=year), [year]),
    ]


def _match(rng: Random) -> list[Fact]:
    one, two = place(rng), place(rng)
    who, other = people(rng, 2)
    home, away, crowd = rng.randint(3, 9), rng.randint(0, 2), str(rng.randint(90, 9900))
    minute = str(rng.randint(3, 88))
    return [
        (
            say(
                rng,
                "{one} {beat|won against|defeated} {two} {home} to {away} on {day}",
                one=one,
                two=two,
                home=home,
                away=away,
                day=rng.choice(DAYS),
            ),
            [one, two, str(home)],
        ),
        (
            say(
                rng,
                "{who} {scored|made the first point|shot the first goal} in minute {minute}",
                who=who,
                minute=minute,
            ),
            [who, minute],
        ),
        (say(rng, "{crowd} {people|visitors|guests} {watched|came to} the {game|match}", crowd=crowd), [crowd]),
        (
            say(
                rng, "{other} {left the field|was hurt|had to rest} {early|after a fall|with a sore knee}", other=other
            ),
            [other],
        ),
        (
            say(rng, "the next {game|match} is against {three} in {month}", three=place(rng), month=rng.choice(MONTHS)),
            [],
        ),
    ]


def _find(rng: Random) -> list[Fact]:
    who, other = people(rng, 2)
    town, depth, age = place(rng), str(rng.randint(2, 90)), str(rng.randint(110, 4900))
    thing = rng.choice(THINGS)
    return [
        (
            say(
                rng,
                "the {job} {who} found {thing} {near|under|behind} the {spot} of {town}",
                job=rng.choice(JOBS),
                who=who,
                thing=article(thing),
                spot=rng.choice(SETTINGS),
                town=town,
            ),
            [who, town],
        ),
        (say(rng, "it {lay|was hidden|had been buried} {depth} {metres|steps} deep", depth=depth), [depth]),
        (
            say(
                rng,
                "{other} of the {org} {says|thinks} that it is {age} years old",
                other=other,
                org=group(rng),
                age=age,
            ),
            [other, age],
        ),
        (
            say(
                rng,
                "the {thing} {will be shown|can be seen|will stay} in {place} until {month}",
                thing=thing,
                place=place(rng),
                month=rng.choice(MONTHS),
            ),
            [],
        ),
        (say(rng, "{people|visitors|children} may {see|touch|draw} it on {day}", day=rng.choice(DAYS)), []),
    ]


def _meeting(rng: Random) -> list[Fact]:
    one, two, three = people(rng, 3)
    day, count, item = rng.choice(DAYS), str(rng.randint(12, 480)), plural(rng.choice(ITEMS))
    return [
        (
            say(
                rng,
                "{one} will {order|count|deliver|check} {count} {item} {by|before|until} {day}",
                one=one,
                count=count,
                item=item,
                day=day,
            ),
            [one, count, day],
        ),
        (
            say(
                rng,
                "{two} {writes to|calls|visits} the {org} about the {adj} {thing}",
                two=two,
                org=group(rng),
                adj=rng.choice(ADJECTIVES),
                thing=rng.choice(ITEMS),
            ),
            [two],
        ),
        (
            say(
                rng,
                "{three} {moves|shifts} the {fair|show|talk|sale} from {day} to {day2}",
                three=three,
                day=day,
                day2=rng.choice(DAYS),
            ),
            [three],
        ),
        (say(rng, "the {budget|limit} is {money} {coins|euros|dollars}", money=str(rng.randint(60, 9900))), []),
        (
            say(
                rng,
                "{two} and {three} {meet again|talk again} in room {room}",
                two=two,
                three=three,
                room=str(rng.randint(2, 90)),
            ),
            [],
        ),
    ]


def _weather(rng: Random) -> list[Fact]:
    one, two = place(rng), place(rng)
    low, high, wind = str(rng.randint(2, 12)), str(rng.randint(13, 34)), str(rng.randint(20, 120))
    who = people(rng, 1)[0]
    return [
        (
            say(
                rng,
                "{heavy rain|a storm|thick fog|snow} {reached|is coming to|will hit} {one} on {day}",
                one=one,
                day=rng.choice(DAYS),
            ),
            [one],
        ),
        (
            say(rng, "the {wind|gusts} {blew|may blow} at {wind} km an hour {near|around} {two}", wind=wind, two=two),
            [wind, two],
        ),
        (
            say(rng, "it will be {low} degrees at night and {high} {degrees|} by day", low=low, high=high).replace(
                "  ", " "
            ),
            [low, high],
        ),
        (
            say(
                rng,
                "{who} of the {org} {asks|warned} people to {stay inside|tie up boats|leave the shore|close all "
                "windows}",
                who=who,
                org=group(rng),
            ),
            [who],
        ),
        (
            say(
                rng,
                "{count} {houses|farms|boats|roads} {were damaged|are closed|lost power}",
                count=str(rng.randint(3, 490)),
            ),
            [],
        ),
    ]


def _person(rng: Random) -> list[Fact]:
    who, other = people(rng, 2)
    year, town, age = str(rng.randint(1890, 2020)), place(rng), str(rng.randint(7, 90))
    return [
        (say(rng, "{who} was born in {town} in {year}", who=who, town=town, year=year), [who, town, year]),
        (
            say(
                rng, "{who} {worked|trained} as {job} with {other}", who=who, job=article(rng.choice(JOBS)), other=other
            ),
            [who, other],
        ),
        (
            say(
                rng,
                "at the age of {age} {who} {built|bought|found|sold} {thing}",
                age=age,
                who=who,
                thing=article(rng.choice(THINGS)),
            ),
            [age],
        ),
        (
            say(
                rng,
                "the {org} gave {who} a {prize|medal} {for|of} {count} {item}",
                org=group(rng),
                who=who,
                count=str(rng.randint(11, 990)),
                item=plural(rng.choice(ITEMS)),
            ),
            [],
        ),
        (
            say(
                rng,
                "{other} {wrote|kept|sent} {count} letters from {town}",
                other=other,
                count=str(rng.randint(11, 990)),
                town=place(rng),
            ),
            [],
        ),
    ]


TEXTS: list[Callable[[Random], list[Fact]]] = [_opening, _match, _find, _meeting, _weather, _person]


def _filler(rng: Random) -> str:
    return say(
        rng,
        "{{Many people|Some neighbours|A few guests|The children|Old friends} {were glad|said little|stayed for "
        "tea|asked questions|took pictures}"
        "|{The news|The story|All this} {spread quickly|was in the paper|surprised nobody|made a stir}"
        "|{Nobody|Hardly anyone} {knew why|had expected it|complained|wanted to wait}|It was {a|an unusually} "
        "{long|quiet|busy} {day|week|season}}",
    )


def _sentences(clauses: list[str]) -> str:
    return " ".join(cap(clause) + "." for clause in clauses)


ASKS = {
    "short": "{Summarize|Summarise|Please summarize|Give a summary of|Sum up} {this text|the text|this note|the "
    "following|this report}{:| in a few sentences:| briefly:}",
    "first": "{What are the main points of|What is the main news in|Give the two key facts of} {this text|this "
    "report|the following}{?|:}",
    "list": "{List|Give|Write down} {the main facts|the key points|the important facts} of {this text|this "
    "note|this report}{:| as a list:}",
}


def summary(rng: Random) -> Example:
    """A text of four to six sentences and what is to be said of it."""
    facts = rng.choice(TEXTS)(rng)
    picked = sorted(rng.sample(range(len(facts)), rng.choice((4, 4, 5))))
    facts = [facts[i] for i in picked]
    text = [clause for clause, _ in facts]
    if rng.random() < 0.6:
        text.insert(rng.randint(1, len(text)), _filler(rng))
    kind = rng.choice(("short", "short", "list", "list", "first"))
    keep = facts[: {"short": 3, "list": rng.choice((3, 4)), "first": 2}[kind]]
    clauses = [clause for clause, _ in keep]
    if kind == "list":
        answer = "\n".join(f"- {cap(clause)}" for clause in clauses)
    elif kind == "short":
        answer = say(
            rng,
            "{In short, {a}, and {b}.|{A}, and {b}.|{A}. {B}.|The text says that {a}. {B}.} {C}.",
            a=clauses[0],
            A=cap(clauses[0]),
            b=clauses[1],
            B=cap(clauses[1]),
            C=cap(clauses[2]),
        )
    else:
        answer = say(
            rng,
            "{The main news is that {a}.|{A}.|Above all, {a}.} {B}.",
            a=clauses[0],
            A=cap(clauses[0]),
            B=cap(clauses[1]),
        )
    prompt = say(rng, ASKS[kind]) + rng.choice(("\n", "\n\n", " ")) + _sentences(text)
    return Example(CATEGORY, kind, prompt, answer, [slot for _, slots in keep for slot in slots])
