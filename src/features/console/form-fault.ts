// Refusals of a form: by the Management API in its own words, or by a page in the reader's language.
import { AuthError } from '../../http/errors.ts';
import { ValidationError } from '../management/management-errors.ts';

export interface FormFault {
  status: number;
  message?: string;
  /** Whether the message is in English, whatever the reader's language. */
  isEnglish?: boolean;
  /** The key of a message, used in place of `message`, with the position in a text that the message names. */
  key?: string;
  line?: number | undefined;
  column?: number | undefined;
  /** The name of the faulty field, if one is to blame, and its label where that differs. */
  field?: string;
  label?: string;
  /** The full path of a nested member: `colors.primary`. */
  at?: string;
}

/** Converts an error to a refusal. @throws the error itself when the user cannot mend it by changing the form. */
export function faultOf(thrown: unknown): FormFault {
  if (!(thrown instanceof AuthError) || thrown.status >= 500 || thrown.status === 403) throw thrown;
  const { status, error_description: description } = thrown;
  const found = /^\w+ validation error: '(.*)'(?: on property ([\w.[\]-]+))?\.$/s.exec(description);
  const isEnglish = !(thrown instanceof ValidationError);
  const [, message = description, at] = found ?? [];
  const [field] = /^\w+/.exec(at ?? '') ?? [];
  return {
    status,
    message,
    isEnglish,
    ...(field !== undefined && { field }),
    ...(at !== undefined && { at }),
  };
}

/** Returns the fault of a member of a body, or of something inside it, whose place the message then names. */
export function faultIn(fault: FormFault | undefined, member: string): FormFault | undefined {
  const { at = '', message = '' } = fault ?? {};
  if (fault === undefined || at === member) return fault;
  const inside = at.startsWith(member) ? at.slice(member.length) : '';
  if (!/^[.[]/.test(inside)) return undefined;
  // A list is entered one item per line, and people count lines from one.
  const place = inside.replace(/^\./, '').replace(/^\[(\d+)\]/, (_all, index) => String(Number(index) + 1));
  return { ...fault, message: `${place}: ${message}` };
}

/** A refusal as pages read it: the whole of it, and by field. */
export interface FaultModel {
  fault?: FormFault;
  faults: Readonly<Record<string, FormFault>>;
}

export function faultModel(fault: FormFault | undefined): FaultModel {
  if (fault === undefined) return { faults: {} };
  return { fault, faults: fault.field === undefined ? {} : { [fault.field]: fault } };
}
