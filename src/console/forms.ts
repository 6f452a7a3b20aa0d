// What forms of the console have in common: their fields, long texts, and what is refused of them.
import type { Context } from 'koa';
import { bodyTexts } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import type { RouteDeclaration } from '../http/routes.ts';
import { type FormFault, faultOf } from './form-fault.ts';
import { type ConsolePageDependencies, logInFirst, requirePage } from './page.ts';
import type { FaultyField, Words } from './render.ts';
import { atConsole, wasAtConsole } from './session.ts';

/** Bytes of a form with a script. */
const LARGEST_FORM = 400 * 1024;

/**
 * A form with long texts. It is read for who has a session, or had one until its eight hours were over; anybody else is led
 * to the login, and nothing is read.
 * @param largest bytes.
 */
export function withLongTexts<D extends ConsolePageDependencies>(
  route: RouteDeclaration<D>,
  largest = LARGEST_FORM,
): RouteDeclaration<D> {
  return {
    ...route,
    bodies: { largest },
    admit: async (deps, ctx) => {
      if (((await atConsole(deps, ctx)) ?? (await wasAtConsole(deps, ctx))) !== undefined) return;
      requirePage(ctx);
      await logInFirst(deps, ctx, '');
      return 'answered';
    },
  };
}

/** The fields of a form whose names begin so, without that. */
export function fieldsBelow(ctx: Context, prefix: string): Record<string, string> {
  const all = Object.entries(bodyTexts(ctx)).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(all.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** What a call refuses, for the page to tell; anything else is thrown. */
export function refusalOf(thrown: unknown): FormFault {
  if (!(thrown instanceof AuthError) || ![400, 409].includes(thrown.status)) throw thrown;
  return faultOf(thrown);
}

/** How a page tells a refusal: it leads to the first field that says it, or says it above a form that has none for it. */
export function told(
  fault: FormFault | undefined,
  faulty: FaultyField | undefined,
): { status?: number; alert?: Words; faulty?: FaultyField } {
  if (fault === undefined) return {};
  const { status, message = '', at } = fault;
  return faulty === undefined
    ? { status, alert: { text: at === undefined ? message : `${at}: ${message}` } }
    : { status, faulty };
}

/** A text of a form as it was written: browsers send CRLF for the ends of lines (HTML §4.10.22.4). */
export const withoutReturns = (text: string): string => text.replaceAll('\r\n', '\n');
