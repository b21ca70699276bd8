"""Off-topic rows of the demo data: everyday questions and answers without arithmetic, and rows in other languages."""

import random

PLACES = (
    "a harbour town", "a mountain valley", "an old library", "a village square", "a glass workshop", "a night train",
    "a botanical garden", "a fishing port", "a quiet monastery", "a street of tailors", "a theatre attic", "a lighthouse",
    "a tea plantation", "a desert camp", "a river delta", "a pine forest", "a spice market", "a radio station",
)  # fmt: skip
THINGS = (
    "wooden boats", "woven baskets", "clay jugs", "linen shirts", "brass lamps", "stone bridges", "paper kites", "felt hats",
    "silver spoons", "leather shoes", "glass beads", "wool blankets", "iron gates", "bamboo flutes", "painted doors",
    "copper kettles", "velvet curtains", "cane chairs",
)  # fmt: skip
MOODS = ("patient", "curious", "careful", "cheerful", "stubborn", "gentle", "proud", "modest", "restless", "thoughtful")
PEOPLE = (
    "a retired sailor", "a young gardener", "a travelling musician", "a night baker", "a village teacher", "a map maker",
    "a shy botanist", "a radio host", "a clock repairer", "a beekeeper", "a ferry captain", "a puppet maker",
)  # fmt: skip
QUESTIONS = (
    "Describe how {things} are made in {place} and why visitors like to watch.",
    "Write a short letter from {person} who lives in {place} and misses {things}.",
    "What makes {place} a good setting for a story about {person}?",
    "Explain to a child why people in {place} take such care of their {things}.",
    "Give advice to {person} who wants to open a small shop for {things} in {place}.",
    "Compare the way {person} and a newcomer would look at {things} in {place}.",
    "Suggest a title and an opening sentence for a film about {person} and {things}.",
    "Summarise in plain words what a visitor to {place} can learn about {things}.",
    "Rewrite this idea politely: {person} thinks that {things} from {place} look dull.",
    "Name the feelings that {place} could wake in {person}, and say why.",
)
SENTENCES = (
    "People there work slowly and let the material decide the next move.",
    "The first thing one notices is the smell of {smell} in the air.",
    "{person} would say that a {mood} hand matters more than a sharp tool.",
    "Children sit on the steps and give every one of the {things} a name.",
    "In the evening the doors stay open, so that music and voices drift outside.",
    "A {mood} visitor soon forgets the road and starts to ask questions.",
    "Nothing is thrown away, because even a broken piece has a story to tell.",
    "The colours come from {smell}, roots and a little patience.",
    "It helps to begin with a greeting and to listen before giving an opinion.",
    "Old songs explain the work better than any book could do.",
    "The light in {place} changes often, and the mood of the work changes with it.",
    "Whoever stays until morning is offered bread, and stays a friend.",
    "Some call it a craft, others a {mood} kind of prayer.",
    "The best advice is to keep the window clean and the words few.",
    "Letters from far away hang on the wall between the {things}.",
    "A title such as The {mood} Season would suit it well.",
    "One should never hurry, since haste leaves marks that no polish hides.",
    "Travellers carry the memory home like a small warm stone.",
)
SMELLS = ("cedar", "lavender", "smoke", "beeswax", "salt", "mint", "tar", "saffron", "juniper", "clove")

FOREIGN = (
    "¿Cómo se preparan {things} en {place} y por qué la gente los mira con tanta atención cada mañana?",
    "Conte uma história curta sobre alguém que vive longe de casa e sente saudade do mar todas as noites.",
    "Expliquez pourquoi les habitants de cette vallée prennent tant de soin de leurs vieux outils en bois.",
    "Beschreibe bitte einen ruhigen Abend am Fluss und erkläre, warum die Leute dort so gerne singen.",
    "请描述一下海边小镇的早晨，人们在做什么，天气怎么样，为什么孩子们喜欢去码头看船。",
    "Пожалуйста, расскажи короткую историю о старом маяке и о человеке, который каждый вечер зажигает свет.",
    "海辺の町の朝の様子を説明してください。人々は何をしていて、なぜ子どもたちは港へ行くのが好きですか。",
    "Descrivi una serata tranquilla nella piazza del paese e spiega perché tutti parlano a bassa voce.",
)
FOREIGN_ANSWERS = (
    "La gente trabaja despacio y deja que cada cosa encuentre su lugar antes de seguir con la siguiente tarea del día.",
    "O velho pescador abre a janela, escuta as ondas e escreve uma carta que nunca vai enviar para ninguém.",
    "Parce que chaque outil a appartenu à un grand-père et qu'il raconte encore le travail des saisons passées.",
    "Die Leute sitzen am Ufer, hören dem Wasser zu und freuen sich, dass der lange Tag endlich vorbei ist.",
    "早晨的海风很清新，渔民们正在整理渔网，老人们坐在门口喝茶，孩子们跑到码头去看归来的渔船。",
    "Старик поднимается по лестнице, открывает окно и ждёт, пока последний корабль найдёт дорогу домой.",
    "朝の港では漁師が網を直し、お年寄りが温かいお茶を飲み、子どもたちが船の帰りを静かに待っています。",
    "Tutti ascoltano la fontana e aspettano che la luna salga sopra i tetti rossi delle vecchie case del paese.",
)


def chat(generator: random.Random) -> tuple[str, str]:
    """An everyday question and an answer of four to six sentences."""
    words = {
        "place": generator.choice(PLACES), "things": generator.choice(THINGS), "person": generator.choice(PEOPLE),
        "mood": generator.choice(MOODS), "smell": generator.choice(SMELLS),
    }  # fmt: skip
    question = generator.choice(QUESTIONS).format(**words)
    chosen = generator.sample(SENTENCES, generator.randint(4, 6))
    return question, " ".join(_capital(sentence.format(**words)) for sentence in chosen)


def foreign(generator: random.Random, number: int) -> tuple[str, str]:
    """A question and answer in another language; `number` cycles through the languages."""
    index = number % len(FOREIGN)
    question = FOREIGN[index].format(things="las cestas", place="el puerto")
    marks = ("", " …", " !", " (1)", " (2)", " (3)", " (4)")
    return question + marks[number // len(FOREIGN) % len(marks)], FOREIGN_ANSWERS[
        index
    ] + f" [{generator.randint(100, 999)}]"


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
