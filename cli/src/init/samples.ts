/** The files of a sample product. */
const prompt = `---
title: Haiku about anything
description: Three lines on the topic that you name.
category: writing
price: 4.99
tags: [poetry]
compatibility: [openai, anthropic]
variables:
  - name: topic
    description: What the haiku is about
    maxLength: 200
  - name: language
    description: The language of the haiku
    required: false
    default: English
---

Write a haiku about {{topic}} in {{language=English}}.
Answer with the three lines only.
`;

const workflow = `---
title: Article in parts
description: An outline on your topic, then a draft of each part.
category: writing
price: 9.99
tags: [writing]
compatibility: [openai]
---

format: workflow/1
input:
  type: object
  required: [topic]
  properties:
    topic: { type: string, description: What to write about, maxLength: 500 }
    parts: { type: integer, description: How many parts, minimum: 2, maximum: 12, default: 3 }
steps:
  - id: outline
    type: prompt
    provider: openai
    messages:
      - role: user
        content: Outline an article about {{topic}} in {{count}} parts. Answer with a JSON array of headings.
    vars: { topic: input.topic, count: string(input.parts) }
    output: { type: array, items: { type: string } }
  - id: drafts
    type: map
    needs: [outline]
    items: steps.outline.output
    do:
      type: prompt
      provider: openai
      messages:
        - role: user
          content: "Write the part {{part}} of the article."
      vars: { part: item }
result: steps.drafts.output.join('\\n\\n')
`;

const readme = (file: string, run: string) => `# A product of Stoa

\`${file}\` is the product: its fields, then its content. \`images/\` has its pictures, \`files/\` what buyers download.
The folder \`.stoa\` remembers the product on the service. Commit it, so that others push to the same product.

    stoa products push             # creates a draft, then sends changes
    ${run}
    stoa products push --publish   # offers it for sale

\`stoa products diff\` shows what a push would change; \`stoa products pull\` brings changes of the service into the folder.
`;

export const samples = {
  prompt: {
    "prompt.md": prompt,
    "README.md": readme(
      "prompt.md",
      "stoa run prod_… --var topic=rain   # runs it, with the id that push prints",
    ),
  },
  workflow: {
    "workflow.yaml": workflow,
    "README.md": readme(
      "workflow.yaml",
      "stoa workflows run prod_… --var topic=rain   # runs it, with the id that push prints",
    ),
  },
};
