// Columns of lists. A column is declared once: its heading, the members of the API's answer that it reads, and its cells.
// The request for the list asks for what its columns read, and the partial console-table draws them.
import type { FormatTime, FormattedTime } from '../../capabilities/pages/times.ts';

type Cell =
  | { kind: 'text'; text: string }
  | { kind: 'number'; number: number }
  /** `never`: the message key that stands for a missing time. */
  | { kind: 'time'; time: FormattedTime | undefined; never: string }
  /** A link to what the row is about, with a second line and tags, whose texts are message keys. */
  | {
      kind: 'name';
      url: string;
      text: string;
      hint: string | undefined;
      tags: { text: string; isBad: boolean }[];
    };

/** What the partial console-table reads. */
export interface Table {
  /** The texts are message keys. */
  headings: { text: string; isNumber: boolean }[];
  /** The cells of each row, in the order of the headings. */
  rows: (Cell & { heading: string })[][];
}

/** The columns of a list whose rows are made of an API's answer. */
export interface ListColumns<Answer> {
  /** The members of the answer that they read. */
  reads: string[];
  tableOf(answer: readonly Answer[], time: FormatTime): Table;
}

interface Column<Answer> {
  heading: string;
  reads: readonly string[];
  cell(row: Answer, time: FormatTime): Cell;
}

/**
 * Makes a column. Its cells can read no members but those that it names, which are all that the API is asked for.
 * @param heading a message key.
 */
type MakeColumn<Answer> = <const Read extends keyof Answer & string>(
  heading: string,
  reads: readonly Read[],
  cell: (row: Pick<Answer, Read>, time: FormatTime) => Cell,
) => Column<Answer>;

/** Declares the columns of a list, in their order. */
export function listColumns<Answer>(
  declare: (column: MakeColumn<Answer>) => readonly Column<Answer>[],
): ListColumns<Answer> {
  const columns = declare((heading, reads, cell) => ({ heading, reads, cell }));
  return {
    reads: [...new Set(columns.flatMap(({ reads }) => reads))],
    tableOf: (answer, time) => {
      const rows = answer.map((row) => columns.map(({ heading, cell }) => ({ ...cell(row, time), heading })));
      const headings = columns.map(({ heading: text }, index) => ({
        text,
        isNumber: rows[0]?.[index]?.kind === 'number',
      }));
      return { headings, rows };
    },
  };
}
