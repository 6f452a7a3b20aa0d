// A line of the hardening checklist: what docs says to do, and what `gatehouse doctor` can see of it.
import type { TenantFile } from '../../../records/tenant/tenant.ts';
import type { Inspection } from '../../../server/administration/inspect.ts';
import type { Settings } from '../../../settings/index.ts';

/** What the lines look at. */
export interface Facts {
  settings: Settings;
  env: Readonly<Record<string, string | undefined>>;
  /** The tenant in force: that of the store or, before the first start, that of the file. */
  tenant: TenantFile;
  /** Undefined where there is no store yet. */
  inspection: Inspection | undefined;
  /** What other users of the machine can read, one sentence; undefined where that is nothing. */
  readableByOthers: string | undefined;
  /** Messages of development that are left in the data directory. */
  outboxFiles: number;
  /** The user that runs this command; undefined where the system has none (Windows). */
  uid: number | undefined;
  /** Epoch milliseconds. */
  now: number;
}

/** `to do`: with what to do; `unseen`: nothing here can tell, with what to check by hand. */
export interface Outcome {
  state: 'passed' | 'to do' | 'unseen';
  text: string;
}

export interface HardeningLine {
  /** Its name in the document and in the output, which never changes. */
  id: string;
  /** What to do, and why; Markdown. */
  demand: string;
  check(facts: Facts): Outcome;
}

export const passed = (text: string): Outcome => ({ state: 'passed', text });
export const toDo = (text: string): Outcome => ({ state: 'to do', text });
export const unseen = (text: string): Outcome => ({ state: 'unseen', text });

/** Most names in a sentence. */
const MAX_NAMED = 5;

/** Returns names as a list of a sentence; long lists are cut. */
export function named(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** Returns `to do` with the names of what is found, otherwise `passed`. */
export function noneOf(found: readonly string[], { todo, good }: { todo: string; good: string }): Outcome {
  return found.length > 0 ? toDo(`${todo}: ${named(found)}`) : passed(good);
}
