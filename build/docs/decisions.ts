// The index of docs/understand/decisions, made from the headings of its pages.
import { readdirSync, readFileSync } from 'node:fs';
import { anchorOf } from './anchor.ts';

/** A page of docs/understand/decisions: the headings of its decisions, each with the anchor that GitHub gives it. */
export interface DecisionPage {
  file: string;
  title: string;
  decisions: { heading: string; anchor: string }[];
}

/** The pages in alphabetical order. */
export function decisionPages(root: string): DecisionPage[] {
  const directory = `${root}docs/understand/decisions/`;
  const files = readdirSync(directory).filter((file) => file.endsWith('.md') && file !== 'README.md');
  return files.sort().map((file) => {
    const text = readFileSync(`${directory}${file}`, 'utf8');
    const headings = [...text.matchAll(/^### (.+)$/gm)].map(([, heading = '']) => heading);
    return {
      file,
      title: /^# (.+)$/m.exec(text)?.[1] ?? file,
      decisions: headings.map((heading) => ({ heading, anchor: anchorOf(heading) })),
    };
  });
}

export function decisionsReadme(root: string): string {
  const pages = decisionPages(root).map(
    ({ file, title, decisions }) =>
      `## [${title}](${file})\n\n${decisions.map(({ heading, anchor }) => `- [${escaped(heading)}](${file}#${anchor})`).join('\n')}\n`,
  );
  return `# Decisions

What Gatehouse does where the contract is silent ("not shown") or where two sources disagree. A heading with the lines below it is one
decision: first the choice, then *why*, where the choice does not say it itself, and what was *given up*, where something was. Code that
follows a decision names it in a comment (\`docs/understand/decisions/<page>.md#<heading>\`); \`test/docs.test.ts\` checks that there is such
a heading. \`npm run docs\` writes this list from the headings.

${pages.join('\n')}`;
}

/** A heading as the text of a link. */
function escaped(heading: string): string {
  return heading.replaceAll(/[[\]]/g, '\\$&');
}
