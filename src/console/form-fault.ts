// A refusal of a form: by the Management API, in its words, or by a page, in the reader's.
import { AuthError } from '../http/errors.ts';
import { RefusedBySchema } from '../management/errors.ts';

/** What a form says of a refusal. */
export interface FormFault {
  status: number;
  /** In the words of the API. */
  message?: string;
  /** Whether those are English, whatever the reader's language is. */
  isEnglish?: boolean;
  /** In place of a message: a message's key, and where in a text it is. */
  key?: string;
  line?: number | undefined;
  column?: number | undefined;
  /** The field that it is about, where it is about one. */
  field?: string;
  /** The same from the top, of a member inside of others: `colors.primary`. */
  at?: string;
}

/** @throws what was thrown, where it is nothing that whoever filled in the form can mend: the error page tells of it. */
export function faultOf(thrown: unknown): FormFault {
  if (!(thrown instanceof AuthError) || thrown.status >= 500 || thrown.status === 403) throw thrown;
  const { status, error_description: said } = thrown;
  const found = /^\w+ validation error: '(.*)'(?: on property ([\w.[\]-]+))?\.$/s.exec(said);
  const isEnglish = !(thrown instanceof RefusedBySchema);
  const [, message = said, at] = found ?? [];
  const [field] = /^\w+/.exec(at ?? '') ?? [];
  return {
    status,
    message,
    isEnglish,
    ...(field !== undefined && { field }),
    ...(at !== undefined && { at }),
  };
}

/** What is wrong with a member of a body, or with something inside of it, whose place is said then. */
export function faultIn(fault: FormFault | undefined, member: string): FormFault | undefined {
  const { at = '', message = '' } = fault ?? {};
  if (fault === undefined || at === member) return fault;
  const inside = at.startsWith(member) ? at.slice(member.length) : '';
  if (!/^[.[]/.test(inside)) return undefined;
  // A list has an entry in each line, and people count lines from one.
  const place = inside.replace(/^\./, '').replace(/^\[(\d+)\]/, (_all, index) => String(Number(index) + 1));
  return { ...fault, message: `${place}: ${message}` };
}

/** What the page of a form is given of a refusal: all of it, and each field's own. */
export function faultModel(fault: FormFault | undefined): object {
  if (fault === undefined) return { faults: {} };
  return { fault, faults: fault.field === undefined ? {} : { [fault.field]: fault } };
}
