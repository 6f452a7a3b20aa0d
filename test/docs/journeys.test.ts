// The files that docs/understand/architecture.md names for a request run in that request.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { journeys } from '../support/journeys.ts';

/** The headings of the document, by the first letter of the request's name. */
const HEADINGS: Readonly<Record<string, string>> = {
  a: 'A login in the browser, with a code',
  b: 'A password grant with a second factor',
  c: '`PATCH /api/v2/users/{id}`',
};
const EVERY = 'What every request passes';

describe('docs/understand/architecture.md', () => {
  const text = readFileSync(new URL('../../docs/understand/architecture.md', import.meta.url), 'utf8');
  const sections = new Map(
    text.split(/^## /m).map((section) => [section.split('\n')[0], section.split('\n').slice(1).join('\n')]),
  );
  /** The files that the numbered lines of a section begin with. */
  const named = (heading: string) =>
    [...(sections.get(heading) ?? '').matchAll(/^\d+\. (.+)$/gm)].flatMap(([, line = '']) =>
      [...(/^(?:`src\/[\w./-]+`(?: and )?)+/.exec(line)?.[0] ?? '').matchAll(/`src\/([^`]+)`/g)].map(
        ([, path = '']) => path,
      ),
    );

  it('names for each request files that run in it', async () => {
    const ran = await journeys();
    for (const [letter, heading] of Object.entries(HEADINGS)) {
      const [, files = []] = [...ran].find(([name]) => name.startsWith(letter)) ?? [];
      const paths = files.map(({ path }) => path);
      expect(named(heading), heading).to.have.length.above(10);
      expect(named(heading), `${heading}: each once`).to.deep.equal([...new Set(named(heading))]);
      expect(
        [...named(EVERY), ...named(heading)].filter((path) => !paths.includes(path)),
        heading,
      ).to.deep.equal([]);
    }
  });
});
