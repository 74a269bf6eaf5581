"""Word problems with small numbers; every step says again which quantities it works with."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.corpus.words import (
    ADJECTIVES,
    CONTAINERS,
    DAYS,
    ITEMS,
    JOBS,
    Example,
    article,
    cap,
    people,
    place,
    plural,
    say,
    words,
)

CATEGORY = "math"


def _finish(rng: Random, prompt: str, answer: str, slots: list[object], **values: object) -> Example:
    return Example(CATEGORY, "math", say(rng, prompt, **values), say(rng, answer, **values), [str(s) for s in slots])


def _things(rng: Random) -> str:
    noun = plural(rng.choice(ITEMS))
    return f"{rng.choice(ADJECTIVES)} {noun}" if rng.random() < 0.5 else noun


def _boxes(rng: Random) -> Example:
    boxes, each = rng.randint(2, 9), rng.randint(2, 9)
    all_of = boxes * each
    gone = rng.randint(1, min(9, all_of - 1))
    one, two = people(rng, 2)
    return _finish(
        rng,
        "{one} {has|owns|keeps} {boxes} {boxname} with {each} {things} in each. {{one}|Then {one}} "
        "{gives|hands|sends} {gone} "
        "{things} to {two}. How many {things} {are left|does {one} have now|remain}?",
        "{{one} has {boxes} {boxname} with {each} {things} each|There are {boxes} {boxname} of {each} "
        "{things}}: {boxes} * {each} = "
        "{all_of}. {After giving|{one} gives} {gone} to {two}{, | so }{all_of} - {gone} = {left} {are "
        "left|remain}.\nAnswer: {left}",
        [one, two, boxes, each, gone],
        one=one,
        two=two,
        boxes=boxes,
        each=each,
        gone=gone,
        all_of=all_of,
        left=all_of - gone,
        things=_things(rng),
        boxname=plural(rng.choice(CONTAINERS)),
    )


def _shop(rng: Random) -> Example:
    first, second = rng.sample(ITEMS, 2)
    n, price, m, cost = (rng.randint(2, 9) for _ in range(4))
    who = people(rng, 1)[0]
    return _finish(
        rng,
        "{In {town}, {article} costs|At the shop in {town} {article} costs|{cap} costs} {price} coins and "
        "{article2} {cost} coins. "
        "{who} {buys|wants|takes} {n} {first} and {m} {second}. {What does {who} pay|How many coins is "
        "that|What is the price}?",
        "{The {first}|{n} {first}} cost {n} * {price} = {np} coins. {The {second}|{m} {second}} cost {m} * "
        "{cost} = {mc} coins. "
        "Together {who} pays {np} + {mc} = {total} coins.\nAnswer: {total}",
        [who, n, price, m, cost],
        who=who,
        town=place(rng),
        article=article(first),
        article2=article(second),
        cap=cap(article(first)),
        n=n,
        m=m,
        price=price,
        cost=cost,
        first=plural(first),
        second=plural(second),
        np=n * price,
        mc=m * cost,
        total=n * price + m * cost,
    )


def _older(rng: Random) -> Example:
    age, gap, later = rng.randint(3, 30), rng.randint(2, 9), rng.randint(2, 9)
    one, two = people(rng, 2)
    return _finish(
        rng,
        "{one} is {age} years old{.| and lives in {town}.} {two} is {gap} years {older|older than {one}}. How "
        "old {is {two}|will {two} be} in {later} years?",
        "{one} is {age}, {and {two} is {gap} years older|so {two}, who is {gap} years older}: {age} + {gap} = {now}. "
        "In {later} years {two} {is|will be} {now} + {later} = {then}.\nAnswer: {then}",
        [one, two, age, gap, later],
        one=one,
        two=two,
        age=age,
        gap=gap,
        later=later,
        now=age + gap,
        then=age + gap + later,
        town=place(rng),
    )


def _share(rng: Random) -> Example:
    each, friends = rng.randint(2, 9), rng.randint(2, 9)
    who = people(rng, 1)[0]
    return _finish(
        rng,
        "{who} {shares|divides|splits} {total} {things} {equally|fairly|evenly} among {friends} {kids}. How "
        "many {things} does {one|each} {get|receive}?",
        "{who} has {total} {things} {for|and} {friends} {kids}. {Each gets|That makes} {total} / {friends} = "
        "{each} {things}"
        "{| each}, because {friends} * {each} = {total}.\nAnswer: {each}",
        [who, each * friends, friends],
        who=who,
        total=each * friends,
        friends=friends,
        each=each,
        things=_things(rng),
        kids=rng.choice(("friends", "children", "cousins", "neighbours", "classes", plural(rng.choice(JOBS)))),
    )


def _days(rng: Random) -> Example:
    a, b, c = (rng.randint(2, 30) for _ in range(3))
    one, two, three = rng.sample(DAYS, 3)
    who = people(rng, 1)[0]
    return _finish(
        rng,
        "{On {one}|{one}:} {who} {verb} {a} {things}. {On {two} it was|On {two} {who} {verb}} {b}{,| more,} and "
        "on {three} {c}. "
        "How many {things} {in all|altogether|is that in total}?",
        "{On {one}|First, on {one},} {who} {verb} {a} {things}{, then | and }{b} on {two}: {a} + {b} = {ab}. "
        "{With|Adding} the {c} "
        "{of|from} {three}: {ab} + {c} = {abc} {things}.\nAnswer: {abc}",
        [who, a, b, c, one, two, three],
        who=who,
        a=a,
        b=b,
        c=c,
        ab=a + b,
        abc=a + b + c,
        one=one,
        two=two,
        three=three,
        things=_things(rng),
        verb=rng.choice(words("sold found packed painted counted made gathered fixed")),
    )


def _walk(rng: Random) -> Example:
    speed, hours, more = rng.randint(2, 9), rng.randint(2, 9), rng.randint(1, 9)
    who = people(rng, 1)[0]
    start, end = place(rng), place(rng)
    return _finish(
        rng,
        "{who} {walks|rides|rows} from {start} {to|towards} {end} {at {speed} km an hour for {hours} hours|for "
        "{hours} hours at {speed} km an hour}"
        "{, then|. After that it is} {more} km more. How {long is the way|many km is it|far is that}?",
        "{In|For} {hours} hours at {speed} km an hour {who} {gets|makes|covers} {hours} * {speed} = {way} km. "
        "{From {start} to {end}|With the last {more} km} "
        "it is {way} + {more} = {all} km.\nAnswer: {all}",
        [who, speed, hours, more],
        who=who,
        start=start,
        end=end,
        speed=speed,
        hours=hours,
        more=more,
        way=speed * hours,
        all=speed * hours + more,
    )


def _rows(rng: Random) -> Example:
    rows, each, extra = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9)
    who = people(rng, 1)[0]
    return _finish(
        rng,
        "{A|The} {job} {who} {plants|lays|puts} {rows} rows of {each} {things}{ and|, then} {extra} "
        "{more|single ones} {by|beside} the {spot}. "
        "How many {things} {is that|are there}{?| in all?}",
        "{who} has {rows} rows of {each} {things}: {rows} * {each} = {inrows}. {By|Beside} the {spot} "
        "{are|there are} {extra} more{, so |: }"
        "{inrows} + {extra} = {all}.\nAnswer: {all}",
        [who, rows, each, extra],
        who=who,
        rows=rows,
        each=each,
        extra=extra,
        inrows=rows * each,
        all=rows * each + extra,
        things=_things(rng),
        job=rng.choice(JOBS),
        spot=rng.choice(words("gate wall door fence stairs window pond road")),
    )


def _missing(rng: Random) -> Example:
    have, need = rng.randint(3, 40), rng.randint(2, 30)
    who = people(rng, 1)[0]
    goal = have + need
    return _finish(
        rng,
        "{who} {needs|wants} {goal} {things} {for the {event}|for {article}} {but has only|and already has} "
        "{have}. How many {are missing|more are needed|must {who} still get}?",
        "{who} {needs|wants} {goal} {things} and has {have}. {Missing are|The rest is} {goal} - {have} = {need} "
        "{things}. "
        "{Check:|Indeed} {have} + {need} = {goal}.\nAnswer: {need}",
        [who, goal, have],
        who=who,
        goal=goal,
        have=have,
        need=need,
        things=_things(rng),
        article=article(rng.choice(ITEMS)),
        event=rng.choice(words("party fair parade play contest feast market wedding")),
    )


def _equation(rng: Random) -> Example:
    x, factor, plus = rng.randint(2, 9), rng.randint(2, 9), rng.randint(1, 30)
    name = rng.choice(words("x y n a b k m t p w"))
    right = x * factor + plus
    return _finish(
        rng,
        "{Solve|Please solve|Find {v} in|What is {v} if} {f} * {v} + {p} = {r}{.|?}",
        "{We start with|Take} {f} * {v} + {p} = {r}. {Subtract|Take away} {p}{ on both sides|}: {f} * {v} = {r} "
        "- {p} = {fx}. "
        "Divide by {f}: {v} = {fx} / {f} = {x}.\nAnswer: {v} = {x}",
        [factor, plus, right, name],
        v=name,
        f=factor,
        p=plus,
        r=right,
        fx=right - plus,
        x=x,
    )


def _compare(rng: Random) -> Example:
    a, b = rng.sample(range(3, 50), 2)
    one, two = people(rng, 2)
    more, less = (one, two) if a > b else (two, one)
    high, low = max(a, b), min(a, b)
    return _finish(
        rng,
        "{one} {has|collected|counted} {a} {things}, {two} {has {b}|only {b}|{b}}. Who has more{, and by how "
        "many|, and how many more}?",
        "{one} has {a} {things} and {two} has {b}. {Since {high} is more than {low}|{high} is larger than "
        "{low}}, {more} has more. "
        "The difference {is|between them is} {high} - {low} = {gap} {things}.\nAnswer: {more}, {gap} more",
        [one, two, a, b],
        one=one,
        two=two,
        a=a,
        b=b,
        high=high,
        low=low,
        more=more,
        gap=high - low,
        things=_things(rng),
        less=less,
    )


PROBLEMS: list[Callable[[Random], Example]] = [
    _boxes,
    _shop,
    _older,
    _share,
    _days,
    _walk,
    _rows,
    _missing,
    _equation,
    _compare,
]


def problem(rng: Random) -> Example:
    """One word problem of a random shape."""
    return rng.choice(PROBLEMS)(rng)
