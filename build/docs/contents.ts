// The contents of the documents: docs/README.md as data, from which the site makes its navigation.

import { anchorOf } from './anchor.ts';

/** One of the four kinds of documents. */
export interface Kind {
  name: string;
  /** The anchor of its heading in the contents. */
  anchor: string;
  groups: Group[];
}

interface Group {
  /** Undefined in a kind that has no groups. */
  name?: string;
  /** The anchor of its heading in the contents. */
  anchor?: string;
  pages: ListedPage[];
}

export interface ListedPage {
  title: string;
  /** The path of the document in `docs`. */
  document: string;
  /** Pages that the same line of the contents names after it. */
  below: ListedPage[];
}

/** Reads the kinds (`##`), their groups (`###`) and the items of the contents. */
export function contentsOf(text: string): Kind[] {
  return text
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [name = '', ...rest] = part.split('\n');
      const groups = rest
        .join('\n')
        .split(/^(?=### )/m)
        .map((group) => {
          const label = /^### (.+)$/m.exec(group)?.[1];
          const items = group.split(/^- /m).slice(1);
          return {
            ...(label !== undefined && { name: label, anchor: anchorOf(label) }),
            pages: items.flatMap(listedPages),
          };
        })
        .filter(({ pages }) => pages.length > 0);
      return { name, anchor: anchorOf(name), groups };
    });
}

function listedPages(item: string): ListedPage[] {
  const [first, ...others] = [...item.matchAll(/\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)#]+\.md)\)/g)].map(
    ([, title = '', document = '']) => ({
      title: title.replaceAll('`', ''),
      document,
      below: [] as ListedPage[],
    }),
  );
  return first === undefined ? [] : [{ ...first, below: others }];
}
