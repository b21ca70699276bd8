"""Sentences shown to a person, in the four languages of requests. Keys are shared by questions and refusals."""

from collections.abc import Mapping

MESSAGES: Mapping[str, Mapping[str, str]] = {
    "input": {
        "en": "Which file or data set should this work on?",
        "zh": "要处理哪个文件或数据集？请给出路径。",
        "pt": "Em qual arquivo ou conjunto de dados devo trabalhar?",
        "es": "¿Sobre qué archivo o conjunto de datos trabajo?",
    },
    "input_named": {
        "en": "Where is `{name}`? No attached file has that name.",
        "zh": "`{name}` 在哪里？附加的文件里没有这个名字。",
        "pt": "Onde está `{name}`? Nenhum arquivo anexado tem esse nome.",
        "es": "¿Dónde está `{name}`? Ningún archivo adjunto tiene ese nombre.",
    },
    "model": {
        "en": "Which model should be trained?",
        "zh": "要训练哪个模型？",
        "pt": "Qual modelo deve ser treinado?",
        "es": "¿Qué modelo se entrena?",
    },
    "target": {
        "en": "{method} needs a target set: which development questions should the selection aim at?",
        "zh": "{method} 需要目标集：选择应对准哪个开发集？",
        "pt": "{method} precisa de um conjunto alvo: para quais perguntas de desenvolvimento a seleção deve mirar?",
        "es": "{method} necesita un conjunto objetivo: ¿a qué preguntas de desarrollo debe apuntar la selección?",
    },
    "benchmark": {
        "en": "Against which evaluation set should contamination be checked?",
        "zh": "要对照哪个评测集检查污染？",
        "pt": "Contra qual conjunto de avaliação verificar a contaminação?",
        "es": "¿Contra qué conjunto de evaluación se comprueba la contaminación?",
    },
    "columns": {
        "en": "Which columns hold the answer to check and the right answer?",
        "zh": "哪一列是要检查的答案，哪一列是标准答案？",
        "pt": "Quais colunas têm a resposta a verificar e a resposta certa?",
        "es": "¿Qué columnas tienen la respuesta a comprobar y la correcta?",
    },
    "code_columns": {
        "en": "Which columns hold the code and its tests?",
        "zh": "代码和测试分别在哪一列？",
        "pt": "Quais colunas têm o código e os testes?",
        "es": "¿Qué columnas tienen el código y las pruebas?",
    },
    "text_column": {
        "en": "Which column should be rewritten, and should the result go into a new one?",
        "zh": "处理哪一列？结果写到新的一列吗？",
        "pt": "Qual coluna deve ser reescrita, e o resultado vai para uma nova?",
        "es": "¿Qué columna se reescribe, y va el resultado a una nueva?",
    },
    "address": {
        "en": "From which address should pages be fetched, and how many at most?",
        "zh": "从哪个网址抓取，最多多少页？",
        "pt": "De qual endereço buscar as páginas, e quantas no máximo?",
        "es": "¿De qué dirección se traen las páginas, y cuántas como máximo?",
    },
    "scale": {
        "en": "{value} lies outside the scale {low} to {high}: another scale, or another bound?",
        "zh": "{value} 不在 {low} 到 {high} 的分制内：换分制还是换下限？",
        "pt": "{value} fica fora da escala {low} a {high}: outra escala, ou outro limite?",
        "es": "{value} queda fuera de la escala {low} a {high}: ¿otra escala, u otro límite?",
    },
    "no_llm": {
        "en": "You want no language model, but {what} needs one. Use rules instead, or may a model be called?",
        "zh": "要求不用大模型，但“{what}”需要模型。改用规则，还是允许调用？",
        "pt": "Você não quer modelo de linguagem, mas {what} precisa de um. Usar regras, ou pode chamar um?",
        "es": "No quiere modelo de lenguaje, pero {what} necesita uno. ¿Usar reglas, o se puede llamar a uno?",
    },
    "threshold": {
        "en": "A similarity threshold lies above 0 and at most 1; {value} does not. Did you mean {guess}?",
        "zh": "相似度阈值应大于 0 且不超过 1，{value} 超出范围。是指 {guess} 吗？",
        "pt": "Um limiar de similaridade fica acima de 0 e até 1; {value} não. Você quis dizer {guess}?",
        "es": "Un umbral de similitud está por encima de 0 y hasta 1; {value} no. ¿Quiso decir {guess}?",
    },
    "rows_kept": {
        "en": "You want no row removed, but {what} removes rows. Mark them instead, or may rows go?",
        "zh": "要求不删任何行，但“{what}”会删行。改为只打标记，还是允许删除？",
        "pt": "Nenhuma linha deve sair, mas {what} remove linhas. Marcar em vez disso, ou podem sair?",
        "es": "No debe salir ninguna fila, pero {what} quita filas. ¿Marcarlas, o pueden salir?",
    },
    "shares": {
        "en": "{first} and {second} contradict each other. Which one holds?",
        "zh": "{first} 与 {second} 互相矛盾，以哪个为准？",
        "pt": "{first} e {second} se contradizem. Qual vale?",
        "es": "{first} y {second} se contradicen. ¿Cuál vale?",
    },
    "order": {
        "en": "You ask for {first} both before and after {second}. Once after {second}, or both times?",
        "zh": "{first} 既要在 {second} 之前又要在之后。只在之后做一次，还是两次都做？",
        "pt": "{first} aparece antes e depois de {second}. Só depois, ou as duas vezes?",
        "es": "{first} aparece antes y después de {second}. ¿Solo después, o las dos veces?",
    },
    "mixture": {
        "en": "The shares sum to {total} %, not 100 %. Scale them, or is one missing?",
        "zh": "各比例之和为 {total}%，不是 100%。按比例缩放，还是漏了一项？",
        "pt": "As proporções somam {total} %, não 100 %. Escalar, ou falta uma?",
        "es": "Las proporciones suman {total} %, no 100 %. ¿Escalarlas, o falta una?",
    },
    "mixture_short": {
        "en": "What if a domain has too few rows for its share: stop early, or repeat rows?",
        "zh": "如果某个领域的数据不够：提前停止，还是允许重复？",
        "pt": "E se um domínio tiver poucas linhas para sua parte: parar antes, ou repetir?",
        "es": "¿Y si un dominio tiene pocas filas para su parte: parar antes, o repetir?",
    },
    "destructive": {
        "en": (
            "That would delete or overwrite inputs, which is never done without a specific yes. Write to "
            "{path} and keep the inputs?"
        ),
        "zh": "这会删除或覆盖输入数据，未经明确同意不会执行。改为写到 {path} 并保留原文件？",
        "pt": (
            "Isso apagaria ou sobrescreveria entradas, o que exige um sim específico. Escrever em {path} "
            "e manter as entradas?"
        ),
        "es": (
            "Eso borraría o sobrescribiría las entradas, lo que exige un sí expreso. ¿Escribir en {path} "
            "y conservar las entradas?"
        ),
    },
    "upload": {
        "en": "Sending data to {where} needs an approved export target. Keep the result in a local file?",
        "zh": "把数据发送到 {where} 需要批准的导出目标。先保存在本地文件？",
        "pt": "Enviar dados para {where} exige um destino aprovado. Manter o resultado em arquivo local?",
        "es": "Enviar datos a {where} exige un destino aprobado. ¿Dejar el resultado en un archivo local?",
    },
    "lossy": {
        "en": "Alpaca has no place for {what}: keep ShareGPT, or write them into the text?",
        "zh": "Alpaca 格式放不下{what}：保留 ShareGPT，还是写进文本？",
        "pt": "Alpaca não tem lugar para {what}: manter ShareGPT, ou escrever no texto?",
        "es": "Alpaca no tiene lugar para {what}: ¿mantener ShareGPT, o escribirlo en el texto?",
    },
    "stage": {
        "en": "`{name}` is plain text without instructions: continue pre-training on it, or build instructions first?",
        "zh": "`{name}` 是纯文本，没有指令：做继续预训练，还是先构造指令？",
        "pt": "`{name}` é texto puro, sem instruções: pré-treinar com ele, ou criar instruções antes?",
        "es": "`{name}` es texto plano, sin instrucciones: ¿preentrenar con él, o crear instrucciones antes?",
    },
    "direction": {
        "en": "Lowest or highest {method}? The method usually takes the highest.",
        "zh": "选 {method} 最小的还是最大的？通常取最大的。",
        "pt": "Menor ou maior {method}? O usual é o maior.",
        "es": "¿Menor o mayor {method}? Lo habitual es el mayor.",
    },
    "languages": {
        "en": "Which languages should stay?",
        "zh": "要保留哪些语言？",
        "pt": "Quais idiomas devem ficar?",
        "es": "¿Qué idiomas deben quedar?",
    },
    "engine": {
        "en": "That is more than one machine reads quickly: run locally, on Ray, or on Spark?",
        "zh": "数据量很大：在本机、Ray 还是 Spark 上运行？",
        "pt": "É muito para uma máquina só: rodar localmente, no Ray ou no Spark?",
        "es": "Es mucho para una sola máquina: ¿local, Ray o Spark?",
    },
    "term": {
        "en": 'What should "{what}" mean here?',
        "zh": "这里的“{what}”具体指什么？",
        "pt": 'O que "{what}" quer dizer aqui?',
        "es": '¿Qué significa aquí "{what}"?',
    },
    "nothing": {
        "en": "I found no step in that. What should happen to the data: filter, deduplicate, convert, sample, train?",
        "zh": "没有看出要做哪一步。想对数据做什么：过滤、去重、转换格式、抽样、训练？",
        "pt": (
            "Não encontrei nenhum passo. O que fazer com os dados: filtrar, deduplicar, converter, amostrar, treinar?"
        ),
        "es": "No encontré ningún paso. ¿Qué hacer con los datos: filtrar, deduplicar, convertir, muestrear, entrenar?",
    },
    "size": {
        "en": "{wanted} rows are asked for and the inputs hold {rows}: take all of them?",
        "zh": "要求 {wanted} 行，而输入只有 {rows} 行：全部取用？",
        "pt": "São pedidas {wanted} linhas e as entradas têm {rows}: usar todas?",
        "es": "Se piden {wanted} filas y las entradas tienen {rows}: ¿usar todas?",
    },
    "tokenizer": {
        "en": "Whose tokenizer counts the tokens? Name the model, or a folder with tokenizer.json.",
        "zh": "用哪个模型的分词器数 token？请给出模型或含 tokenizer.json 的目录。",
        "pt": "Qual tokenizador conta os tokens? Diga o modelo ou uma pasta com tokenizer.json.",
        "es": "¿Qué tokenizador cuenta los tokens? Diga el modelo o una carpeta con tokenizer.json.",
    },
    "how_many": {
        "en": "How many rows, or which share of them, should stay?",
        "zh": "要保留多少行，或者百分之几？",
        "pt": "Quantas linhas, ou que parte delas, devem ficar?",
        "es": "¿Cuántas filas, o qué parte de ellas, deben quedar?",
    },
    "translate_to": {
        "en": "Into which language?",
        "zh": "翻译成哪种语言？",
        "pt": "Para qual idioma?",
        "es": "¿A qué idioma?",
    },
    "balance": {
        "en": "How many rows in all, or at most how many of each group?",
        "zh": "总共要多少行，或者每组最多多少行？",
        "pt": "Quantas linhas no total, ou no máximo quantas por grupo?",
        "es": "¿Cuántas filas en total, o como máximo cuántas por grupo?",
    },
    "method": {
        "en": "{method} is not available yet. Use {offered} instead, or leave training out?",
        "zh": "还不支持 {method}。改用 {offered}，还是先不训练？",
        "pt": "{method} ainda não existe aqui. Usar {offered}, ou deixar o treino de fora?",
        "es": "{method} aún no existe aquí. ¿Usar {offered}, o dejar fuera el entrenamiento?",
    },
    "refuse_leakage": {
        "en": "Selecting or training towards a test set that is reported afterwards is leakage",
        "zh": "对着之后要汇报的测试集做选择或训练属于泄漏",
        "pt": "Selecionar ou treinar mirando um conjunto de teste que será reportado é vazamento",
        "es": "Seleccionar o entrenar hacia un conjunto de prueba que luego se reporta es fuga de datos",
    },
    "refuse_outside_project": {
        "en": "The path is outside the project",
        "zh": "路径在项目之外",
        "pt": "O caminho fica fora do projeto",
        "es": "La ruta está fuera del proyecto",
    },
    "refuse_infringing_source": {
        "en": "The source infringes the rights of its authors or the rules of the site",
        "zh": "该来源侵犯作者权利或违反网站规则",
        "pt": "A fonte viola direitos dos autores ou as regras do site",
        "es": "La fuente infringe derechos de los autores o las reglas del sitio",
    },
    "refuse_personal_data_collection": {
        "en": "Collecting personal data of people who did not agree is declined",
        "zh": "不收集未经本人许可的个人信息",
        "pt": "Coletar dados pessoais sem permissão das pessoas é recusado",
        "es": "No se recogen datos personales sin permiso de las personas",
    },
    "refuse_hiding_provenance": {
        "en": "Hiding where data comes from is declined; cards name every source",
        "zh": "不隐藏数据来源；数据卡会写明每个来源",
        "pt": "Esconder a origem dos dados é recusado; o cartão nomeia cada fonte",
        "es": "No se oculta el origen de los datos; la ficha nombra cada fuente",
    },
    "refuse_secret_in_request": {
        "en": (
            "The request holds a secret; it was removed and is stored nowhere. Treat it as exposed and "
            "put a new one into the environment"
        ),
        "zh": "请求里含有密钥；已移除，不会保存。请视为已泄露，更换后放入环境变量",
        "pt": (
            "O pedido contém um segredo; foi removido e não é guardado. Considere-o exposto e ponha um novo no ambiente"
        ),
        "es": (
            "La petición contiene un secreto; se quitó y no se guarda. Délo por expuesto y ponga uno "
            "nuevo en el entorno"
        ),
    },
    "refuse_outside_service": {
        "en": "Data leaves this machine only to an export target that was approved by name",
        "zh": "数据只会发往明确批准的导出目标",
        "pt": "Dados só saem desta máquina para um destino aprovado pelo nome",
        "es": "Los datos solo salen de esta máquina hacia un destino aprobado por su nombre",
    },
    "refuse_impossible_medium": {
        "en": "There is no operator for video, speech or images",
        "zh": "没有处理视频、语音或图像的算子",
        "pt": "Não há operador para vídeo, fala ou imagem",
        "es": "No hay operador para vídeo, voz o imagen",
    },
    "refuse_secret_file": {
        "en": "Secrets are neither read from files nor written to outputs; they stay in the environment",
        "zh": "不会从文件读取密钥，也不会写进输出；密钥只放在环境变量里",
        "pt": "Segredos não são lidos de arquivos nem escritos em saídas; ficam no ambiente",
        "es": "Los secretos no se leen de archivos ni se escriben en salidas; quedan en el entorno",
    },
    "refuse_unapproved_run": {
        "en": "Nothing runs before this very plan was shown and approved",
        "zh": "方案展示并批准之前不会运行任何步骤",
        "pt": "Nada roda antes de este plano ser mostrado e aprovado",
        "es": "Nada se ejecuta antes de mostrar y aprobar este plan",
    },
    "refuse_unsafe_use": {
        "en": "That part is unsafe: workflows hold no code, and no data is made for harm",
        "zh": "这部分不安全：工作流不含代码，也不为有害用途制作数据",
        "pt": "Essa parte é insegura: fluxos não contêm código, e não se fazem dados para causar dano",
        "es": "Esa parte no es segura: los flujos no contienen código, ni se hacen datos para dañar",
    },
}
"""Message key to text by language; braces are filled by `say`."""


def say(key: str, language: str, **values: object) -> str:
    """The message `key` in a language, English when there is none."""
    texts = MESSAGES[key]
    return texts.get(language, texts["en"]).format(**values)
