// The report of `gatehouse move check`: as data, and as text for a terminal.
import type { AssessedObject } from './assess.ts';
import type { TaskGroup } from './elsewhere.ts';
import type { Need } from './needs.ts';
import type { UsersFound } from './users-found.ts';
import { VERDICTS, type Verdict } from './verdicts/verdict.ts';

export interface Report {
  /** The export, as it was named. */
  export: string;
  /** The origin that the tasks have; `isExample` if nothing said it. */
  origin: string;
  isExampleOrigin: boolean;
  /** What `apply` and `move in` would refuse, with file, line and cause. */
  faults: readonly string[];
  counts: Record<Verdict, number>;
  objects: AssessedObject[];
  users: UsersFound | undefined;
  tasks: TaskGroup[];
}

export const countsOf = (objects: readonly AssessedObject[]): Record<Verdict, number> =>
  Object.fromEntries(
    VERDICTS.map((verdict) => [verdict, objects.filter((one) => one.verdict === verdict).length]),
  ) as Record<Verdict, number>;

/** 1 where something could not be read, 2 where something needs a value or is not in force. */
export function exitCodeOf({ faults, objects, users }: Report): number {
  if (faults.length > 0) return 1;
  const isOpen = objects.some(({ verdict }) => verdict === 'not in force' || verdict === 'needs a value');
  return isOpen || (users?.refused.length ?? 0) > 0 ? 2 : 0;
}

/** A sentence, and the objects that it is about. */
export interface Note {
  mark: string;
  says: string;
  decision: string | undefined;
  objects: { name: string; kind: string; at: string }[];
}

/** Returns the statements of one verdict, each sentence once; those about most objects first. */
export function notesOf(objects: readonly AssessedObject[], verdict: Verdict, letter: string): Note[] {
  const all = objects.flatMap(({ name, kind, statements }) =>
    statements.filter((one) => one.verdict === verdict).map((statement) => ({ name, kind, statement })),
  );
  const byText = Map.groupBy(all, ({ statement: { says, decision = '' } }) => `${says}\n${decision}`);
  return [...byText.values()]
    .sort((a, b) => b.length - a.length)
    .flatMap(([first, ...others], index) =>
      first === undefined
        ? []
        : [
            {
              mark: `${letter}${index + 1}`,
              says: first.statement.says,
              decision: first.statement.decision,
              objects: [first, ...others].map(({ name, kind, statement: { at } }) => ({ name, kind, at })),
            },
          ],
    );
}

/** A variable, with what needs it. */
interface WantedVariable {
  variable: string;
  needs: (Need & { name: string; kind: string })[];
}

/** Returns each variable once, those that are found at the same place together. */
export function valuesOf(
  objects: readonly AssessedObject[],
): { find: string; variables: WantedVariable[] }[] {
  const all = objects.flatMap(({ name, kind, needs }) => needs.map((need) => ({ ...need, name, kind })));
  const variables = [...Map.groupBy(all, ({ variable }) => variable)].map(([variable, needs]) => ({
    variable,
    needs,
  }));
  return [...Map.groupBy(variables, ({ needs: [first] }) => first?.find ?? '')].map(([find, found]) => ({
    find,
    variables: found,
  }));
}

/** Sections of one object have no name of their own. */
export const called = ({ kind, name }: { kind: string; name: string }): string => `${kind} ${name}`.trim();

/** The most objects that a note lists in the text; the others are counted. */
const MAX_LISTED = 6;
const DOCUMENTS = 'docs/';

export function textOf(report: Report): string {
  const { objects, counts, faults, users, tasks } = report;
  const absent = notesOf(objects, 'not in force', 'N');
  const different = notesOf(objects, 'in force, differently', 'D');
  const values = valuesOf(objects);
  const marks = new Map<string, string[]>();
  for (const note of [...absent, ...different])
    for (const { kind, name } of note.objects)
      marks.set(`${kind}\n${name}`, [...new Set([...(marks.get(`${kind}\n${name}`) ?? []), note.mark])]);
  const width = Math.max(...VERDICTS.map((verdict) => verdict.length));
  const lines = [
    `What becomes of ${report.export}: ${objects.length} objects`,
    '',
    ...[...VERDICTS]
      .reverse()
      .map((verdict) => `  ${verdict.padEnd(width)}  ${String(counts[verdict]).padStart(5)}`),
    ...(users === undefined ? [] : ['', ...users.lines.map((line) => `  ${line}`)]),
    ...section(
      'Cannot be taken as it is',
      faults.map((fault) => `  ${fault}`),
    ),
    ...section(
      'Values to set, as environment variables of the server and of the commands',
      values.flatMap(({ find, variables }) => [`  From ${find}:`, ...valueLines(variables)]),
    ),
    ...section('Not in force: what users will notice', absent.flatMap(noteLines)),
    ...section('In force, differently', different.flatMap(noteLines)),
    ...section('Objects', objectLines(objects, marks, width)),
    ...(users === undefined
      ? []
      : section(
          'Users who cannot be taken',
          users.refused.map((one) => `  ${one}`),
        )),
    ...section(
      `To do at others${report.isExampleOrigin ? ` (with BASE_URL this has your own address instead of ${report.origin})` : ''}`,
      tasks.flatMap(taskLines),
    ),
  ];
  return lines.join('\n');
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', title, '', ...lines];

function valueLines(variables: readonly WantedVariable[]): string[] {
  return variables.flatMap(({ variable, needs }) => {
    const [first] = needs;
    return [
      `    ${variable}${first?.write === undefined ? '' : `  (write into the export: ${first.write})`}`,
      ...needs
        .slice(0, MAX_LISTED)
        .map(({ kind, name, what, at }) => `        ${called({ kind, name })}: ${what}; ${at}`),
      ...more(needs.length),
    ];
  });
}

const more = (count: number): string[] =>
  count > MAX_LISTED ? [`      and ${count - MAX_LISTED} more`] : [];

function noteLines({ mark, says, decision, objects }: Note): string[] {
  return [
    `  ${mark.padEnd(4)}${says}`,
    ...(decision === undefined ? [] : [`      why: ${DOCUMENTS}${decision}`]),
    ...objects.slice(0, MAX_LISTED).map(({ kind, name, at }) => `      ${called({ kind, name })}: ${at}`),
    ...more(objects.length),
  ];
}

function objectLines(
  objects: readonly AssessedObject[],
  marks: ReadonlyMap<string, readonly string[]>,
  width: number,
): string[] {
  const kindWidth = Math.max(...objects.map(({ kind }) => kind.length));
  return objects.map(({ kind, name, verdict, needs }) => {
    const noted = marks.get(`${kind}\n${name}`) ?? [];
    const variables = needs.map(({ variable }) => variable);
    const rest = [...noted, ...new Set(variables)].join(' ');
    return `  ${verdict.padEnd(width)}  ${kind.padEnd(kindWidth)}  ${name}${rest === '' ? '' : `  [${rest}]`}`;
  });
}

function taskLines({ title, note, tasks }: TaskGroup): string[] {
  return [
    `  ${title}`,
    ...(note === undefined ? [] : [`    ${note}`]),
    ...tasks.flatMap(({ where, task, values }) => [
      `    - ${where}: ${task}`,
      ...values.map((value) => `        ${value}`),
    ]),
    '',
  ];
}
