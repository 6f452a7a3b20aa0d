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
}

/** @throws what was thrown, where it is nothing that whoever filled in the form can mend: the error page tells of it. */
export function faultOf(thrown: unknown): FormFault {
  if (!(thrown instanceof AuthError) || thrown.status >= 500 || thrown.status === 403) throw thrown;
  const { status, error_description: said } = thrown;
  const found = /^\w+ validation error: '(.*)'(?: on property (\w+)[^']*)?\.$/s.exec(said);
  const isEnglish = !(thrown instanceof RefusedBySchema);
  const [, message = said, field] = found ?? [];
  return { status, message, isEnglish, ...(field !== undefined && { field }) };
}

/** What the page of a form is given of a refusal: all of it, and each field's own. */
export function faultModel(fault: FormFault | undefined): object {
  if (fault === undefined) return { faults: {} };
  return { fault, faults: fault.field === undefined ? {} : { [fault.field]: fault } };
}
