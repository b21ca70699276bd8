"""Word problems of the demo data: stories with numbers, solved step by step with calculator annotations.

A story is a question with named quantities and a list of steps `(result, left, operation, right, sentence)`. The
solution writes each step as `left operation right=<<left operation right=value>>value` and ends in `#### value`.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAMES = (
    "Amara", "Bruno", "Chiara", "Dario", "Elif", "Farid", "Greta", "Hugo", "Ingrid", "Jonas", "Keiko", "Luca", "Mirela",
    "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Samir", "Tomasz", "Uma", "Viktor", "Wanda", "Ximena", "Yusuf", "Zoe",
)  # fmt: skip
TOWNS = (
    "Lindau",
    "Porto",
    "Aarhus",
    "Trieste",
    "Galway",
    "Bergen",
    "Toledo",
    "Ghent",
    "Split",
    "Tartu",
    "Évora",
    "Kotor",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OPENERS = (
    "It is a busy {day} in {town}.", "On a rainy {day} near {town}, plans change quickly.", "{town} wakes up early on {day}.",
    "A neighbour from {town} tells this story every {day}.", "The market in {town} opens on {day}.",
    "School is closed in {town} this {day}.", "A cold wind blows through {town} on {day}.",
    "Everyone in {town} is out of doors this {day}.", "", "", "",
)  # fmt: skip
OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b}


@dataclass(frozen=True)
class Story:
    """A template: question, quantities with their ranges, steps of the solution."""

    question: str
    ranges: Mapping[str, tuple[int, int]]
    steps: Sequence[tuple[str, str, str, str, str]]
    words: Mapping[str, Sequence[str]]


FRUIT = ("apples", "pears", "plums", "figs", "cherries", "apricots", "quinces", "lemons")
TOOLS = ("chisels", "hinges", "screws", "brackets", "nails", "washers", "clamps", "hooks")
SWEETS = ("muffins", "scones", "tartlets", "biscuits", "rolls", "pretzels", "buns", "waffles")
BOOKS = ("novels", "atlases", "comics", "cookbooks", "diaries", "manuals", "poems", "plays")
PLANTS = ("tulips", "ferns", "roses", "cacti", "lilies", "daisies", "herbs", "shrubs")
PETS = ("goats", "hens", "ducks", "rabbits", "sheep", "geese", "ponies", "pigeons")

STORIES: tuple[Story, ...] = (
    Story("{n1} fills {a} crates with {b} {x} each and then sells {c} of the {x} to {n2}. How many {x} does {n1} still have?",
          {"a": (3, 14), "b": (12, 48), "c": (5, 30)},
          [("p", "a", "*", "b", "{n1} packs {} {x} in all."), ("q", "p", "-", "c", "After the sale {n1} has {} {x}.")], {"x": FRUIT}),
    Story("A workshop keeps {a} {x} on the upper shelf and {b} {x} on the lower shelf. {n1} uses {c} of them every day for {d} days. "
          "How many {x} remain in the workshop?", {"a": (90, 240), "b": (80, 260), "c": (4, 12), "d": (3, 12)},
          [("p", "a", "+", "b", "At first there are {} {x}."), ("q", "c", "*", "d", "{n1} uses {} of them."),
           ("r", "p", "-", "q", "That leaves {} {x}.")], {"x": TOOLS}),
    Story("{n1} bakes {a} trays of {x} with {b} on every tray. {n2} brings {c} more from home, and {d} guests share all of them "
          "equally. How many {x} does each guest get?", {"a": (4, 9), "b": (12, 24), "c": (0, 0), "d": (2, 4)},
          [("p", "a", "*", "b", "The trays hold {} {x}."), ("q", "p", "+", "c", "Together there are {} {x}."),
           ("r", "q", "/", "d", "Each guest gets {} {x}.")], {"x": SWEETS}),
    Story("The library lends {a} {x} in the first week, twice as many in the second week and {b} fewer than that in the third. "
          "How many {x} does it lend in the third week?", {"a": (35, 140), "b": (6, 60)},
          [("p", "a", "*", "2", "In the second week it lends {} {x}."), ("q", "p", "-", "b", "In the third week it lends {} {x}.")],
          {"x": BOOKS}),
    Story("{n1} plants {a} rows of {x}. Every row holds {b} {x}, but a hailstorm destroys {c} of them before {n2} adds {d} new ones. "
          "How many {x} grow there now?", {"a": (6, 18), "b": (11, 33), "c": (7, 44), "d": (5, 29)},
          [("p", "a", "*", "b", "{n1} plants {} {x}."), ("q", "p", "-", "c", "The storm leaves {} {x}."),
           ("r", "q", "+", "d", "With the new ones there are {} {x}.")], {"x": PLANTS}),
    Story("On a farm live {a} {x}. {n1} buys {b} more, and in spring {c} young ones are born. A pen has room for {d}. "
          "How many {x} do not fit into the pen?", {"a": (60, 150), "b": (12, 48), "c": (9, 40), "d": (20, 70)},
          [("p", "a", "+", "b", "After buying there are {} {x}."), ("q", "p", "+", "c", "With the young ones there are {} {x}."),
           ("r", "q", "-", "d", "So {} {x} do not fit.")], {"x": PETS}),
    Story("A ferry makes {a} crossings a day and carries {b} passengers on each. How many passengers does it carry in {c} days "
          "if {d} people in all miss the boat?", {"a": (4, 11), "b": (45, 160), "c": (3, 9), "d": (12, 80)},
          [("p", "a", "*", "b", "A full day means {} passengers."), ("q", "p", "*", "c", "All the days together make {} places."),
           ("r", "q", "-", "d", "{} passengers travel.")], {}),
    Story("{n1} earns {a} euros an hour in a bakery and works {b} hours this week. Bus tickets cost {c} euros altogether. "
          "How much money does {n1} keep?", {"a": (11, 24), "b": (9, 38), "c": (8, 33)},
          [("p", "a", "*", "b", "{n1} earns {} euros."), ("q", "p", "-", "c", "After the tickets {} euros are left.")], {}),
    Story("A water tank holds {a} litres. {n1} draws {b} litres in the morning and {c} litres at night, and rain brings back {d} litres. "
          "How many litres are in the tank afterwards?", {"a": (400, 950), "b": (40, 150), "c": (35, 140), "d": (10, 60)},
          [("p", "a", "-", "b", "In the morning {} litres are left."), ("q", "p", "-", "c", "At night {} litres are left."),
           ("r", "q", "+", "d", "After the rain there are {} litres.")], {}),
    Story("{n1} reads {a} pages every evening. The book has {b} chapters of {c} pages. How many pages are unread after {d} evenings?",
          {"a": (12, 19), "b": (11, 18), "c": (21, 34), "d": (4, 11)},
          [("p", "b", "*", "c", "The book has {} pages."), ("q", "a", "*", "d", "{n1} has read {} pages."),
           ("r", "p", "-", "q", "{} pages are unread.")], {}),
    Story("Tickets for the puppet theatre cost {a} coins for adults and {b} coins for children. {n1} takes {c} adults and {d} children. "
          "What does the visit cost?", {"a": (8, 19), "b": (3, 7), "c": (2, 9), "d": (3, 14)},
          [("p", "a", "*", "c", "The adults pay {} coins."), ("q", "b", "*", "d", "The children pay {} coins."),
           ("r", "p", "+", "q", "Together that is {} coins.")], {}),
    Story("A cyclist rides {a} kilometres each hour for {b} hours, rests, and then rides another {c} kilometres to reach {n1}. "
          "{n2} takes a road that is {d} kilometres longer. How long is the road of {n2}?",
          {"a": (14, 27), "b": (2, 6), "c": (7, 38), "d": (5, 31)},
          [("p", "a", "*", "b", "Before the rest the cyclist rides {} kilometres."), ("q", "p", "+", "c", "The whole way is {} kilometres."),
           ("r", "q", "+", "d", "The other road is {} kilometres.")], {}),
    Story("{n1} saves {a} coins every week for {b} weeks and receives {c} coins from an aunt. A lamp costs {d} coins. "
          "How many coins are left after buying the lamp?", {"a": (9, 26), "b": (7, 16), "c": (10, 45), "d": (30, 62)},
          [("p", "a", "*", "b", "{n1} saves {} coins."), ("q", "p", "+", "c", "With the gift there are {} coins."),
           ("r", "q", "-", "d", "After the purchase {} coins are left.")], {}),
    Story("A choir of {a} singers stands in rows of {b}. {n1} counts {c} singers who are ill, and {d} visitors join instead. "
          "How many people sing tonight?", {"a": (48, 130), "b": (6, 13), "c": (4, 19), "d": (2, 17)},
          [("p", "a", "-", "c", "Without the ill {} singers remain."), ("q", "p", "+", "d", "With the visitors {} people sing.")], {}),
    Story("A printer makes {a} posters in a minute. After {b} minutes {n1} finds that {c} posters are smudged and throws them away. "
          "The rest go to {d} schools in equal piles of as many as fit. How many good posters are there?",
          {"a": (13, 37), "b": (6, 22), "c": (8, 55), "d": (3, 8)},
          [("p", "a", "*", "b", "{} posters are made."), ("q", "p", "-", "c", "{} posters are good.")], {}),
    Story("{n1} cuts a rope of {a} centimetres into {b} pieces of {c} centimetres. How many centimetres are left over for {n2}?",
          {"a": (600, 980), "b": (5, 14), "c": (21, 41)},
          [("p", "b", "*", "c", "The pieces take {} centimetres."), ("q", "a", "-", "p", "{} centimetres are left over.")], {}),
    Story("Each shelf in the cellar carries {a} jars. {n1} fills {b} shelves with honey and {c} shelves with jam. "
          "{d} jars break on the stairs. How many jars are whole?", {"a": (14, 36), "b": (3, 9), "c": (2, 8), "d": (5, 24)},
          [("p", "b", "+", "c", "{n1} fills {} shelves."), ("q", "p", "*", "a", "They carry {} jars."),
           ("r", "q", "-", "d", "{} jars are whole.")], {}),
    Story("A baker uses {a} grams of flour for a loaf and {b} grams for a roll. For a feast {n1} orders {c} loaves and {d} rolls. "
          "How many grams of flour are needed?", {"a": (350, 620), "b": (45, 90), "c": (4, 13), "d": (11, 48)},
          [("p", "a", "*", "c", "The loaves need {} grams."), ("q", "b", "*", "d", "The rolls need {} grams."),
           ("r", "p", "+", "q", "In all {} grams are needed.")], {}),
    Story("{n1} and {n2} collect shells. {n1} finds {a} shells on each of {b} walks, {n2} finds {c} shells in one afternoon. "
          "How many more shells does {n1} have?", {"a": (14, 31), "b": (5, 12), "c": (20, 66)},
          [("p", "a", "*", "b", "{n1} finds {} shells."), ("q", "p", "-", "c", "That is {} more than {n2} has.")], {}),
    Story("A train leaves {n1}'s village with {a} travellers. At the first stop {b} get off and {c} get on, at the second stop {d} get on. "
          "How many travellers are on the train then?", {"a": (120, 290), "b": (15, 66), "c": (12, 58), "d": (9, 47)},
          [("p", "a", "-", "b", "After getting off {} travellers remain."), ("q", "p", "+", "c", "After the first stop there are {}."),
           ("r", "q", "+", "d", "After the second stop there are {} travellers.")], {}),
    Story("A mosaic has {a} rows with {b} tiles in every row. {n1} replaces {c} cracked tiles, and {n2} paints {d} of the sound ones blue. "
          "How many sound tiles stay unpainted?", {"a": (16, 34), "b": (18, 42), "c": (11, 57), "d": (25, 98)},
          [("p", "a", "*", "b", "The mosaic has {} tiles."), ("q", "p", "-", "c", "{} tiles are sound."),
           ("r", "q", "-", "d", "{} sound tiles stay unpainted.")], {}),
    Story("An orchard has {a} trees, and each tree gives {b} baskets of {x}. {n1} has sold {c} baskets so far. How many baskets are left to sell?",
          {"a": (18, 52), "b": (3, 9), "c": (14, 53)},
          [("p", "a", "*", "b", "The orchard gives {} baskets."), ("q", "p", "-", "c", "{} baskets are left.")], {"x": FRUIT}),
    Story("{n1} builds a fence of {a} metres on the north side and {b} metres on the south side. A post is set every 2 metres. "
          "How many such gaps of 2 metres does the fence have?", {"a": (24, 90), "b": (20, 96)},
          [("p", "a", "+", "b", "The fence is {} metres long."), ("q", "p", "/", "2", "It has {} gaps.")], {}),
    Story("At the fair a game costs {a} tokens. {n1} plays {b} games, wins back {c} tokens and gives {d} tokens to {n2}. "
          "How many tokens has {n1} spent or given away in total, after counting the win?",
          {"a": (4, 11), "b": (8, 19), "c": (6, 28), "d": (3, 17)},
          [("p", "a", "*", "b", "The games cost {} tokens."), ("q", "p", "-", "c", "After the win it is {} tokens."),
           ("r", "q", "+", "d", "With the gift it is {} tokens.")], {}),
)  # fmt: skip


def tell(generator: random.Random) -> tuple[str, str, int]:
    """A question, its worked solution and the final number."""
    while True:
        story = generator.choice(STORIES)
        n1, n2 = generator.sample(NAMES, 2)
        words = {"n1": n1, "n2": n2, **{key: generator.choice(values) for key, values in story.words.items()}}
        values = {name: generator.randint(low, high) for name, (low, high) in story.ranges.items()}
        lines = []
        for result, left, operation, right, sentence in story.steps:
            x, y = _number(left, values), _number(right, values)
            if operation == "/" and x % y:
                break
            values[result] = OPERATIONS[operation](x, y)
            term = f"{x}{operation}{y}"
            shown = sentence.replace("{}", f"{term}=<<{term}={values[result]}>>{values[result]}", 1)
            lines.append(shown.format(**words))
        else:
            final = values[story.steps[-1][0]]
            if final > 0:
                opener = generator.choice(OPENERS).format(day=generator.choice(DAYS), town=generator.choice(TOWNS))
                question = f"{opener} {story.question.format(**words, **values)}".strip()
                return question, "\n".join([*lines, f"#### {final}"]), final


def _number(name: str, values: Mapping[str, int]) -> int:
    return int(name) if name.isdigit() else values[name]
