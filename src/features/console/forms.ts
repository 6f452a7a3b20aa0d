// Helpers for the console's forms: their fields, long texts, and refusals.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { bodyTexts } from '../../http/server/body.ts';
import { type FormFault, faultOf } from './form-fault.ts';
import type { DisplayText, FaultyField } from './render.ts';

/** Returns the form fields whose names begin with a prefix, by the rest of their names. */
export function fieldsBelow(ctx: Context, prefix: string): Record<string, string> {
  const all = Object.entries(bodyTexts(ctx)).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(all.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** Returns the refusal of a call that answered 400 or 409. @throws any other error. */
export function refusalOf(thrown: unknown): FormFault {
  if (!(thrown instanceof AuthError) || ![400, 409].includes(thrown.status)) throw thrown;
  return faultOf(thrown);
}

/**
 * Returns the page options that show a refusal: a link to the faulty field, or an alert when no field is to blame.
 */
export function refusalOptions(
  fault: FormFault | undefined,
  faulty: FaultyField | undefined,
): { status?: number; alert?: DisplayText; faulty?: FaultyField } {
  if (fault === undefined) return {};
  const { status, message = '', at } = fault;
  return faulty === undefined
    ? { status, alert: { text: at === undefined ? message : `${at}: ${message}` } }
    : { status, faulty };
}

/** Undoes the line endings of forms: browsers send CRLF (HTML §4.10.22.4). */
export const withoutReturns = (text: string): string => text.replaceAll('\r\n', '\n');
