// The page that shows the form which an administrator had sent before they had to log in again, and lets them send or
// discard it.
import type { RouteDeclarations } from '../../http/router.ts';
import { CONSOLE } from './callbacks.ts';
import { AGAIN, AGAIN_FIELD, type KeptForm, readKeptForm } from './kept-form.ts';
import { isMasked } from './masked.ts';
import { type ConsolePageDependencies, consolePage, redirectAfterForm } from './page.ts';
import { declareConsolePage, renderConsole } from './render.ts';
import { isSecretName } from './resources/secrets.ts';

/** The maximum length of a text that is shown, characters; for a longer one only its length is shown. */
const MAX_SHOWN_LENGTH = 120;

/** A field as the page shows it: its text, or only its length. */
interface ShownField {
  name: string;
  text?: string;
  length: number;
}

interface AgainModel {
  action: string;
  from: string;
  field: string;
  sent: ShownField[];
}

export const AGAIN_PAGE = declareConsolePage<AgainModel>('console/again');

export const againRoutes: RouteDeclarations<ConsolePageDependencies> = {
  [`GET ${AGAIN}` as const]: consolePage('', { scopes: [] }, async (deps, ctx, session) => {
    const form = await readKeptForm(deps, session);
    // It was already sent, for example in another tab.
    if (form === undefined) return redirectAfterForm(ctx, CONSOLE);
    const { section, path, from } = form;
    await renderConsole(deps, ctx, session, {
      page: AGAIN_PAGE,
      section,
      title: 't:console.again.title',
      model: { action: path, from, field: AGAIN_FIELD, sent: shownFields(form) },
    });
  }),
};

/** Names of fields that hold state of the page rather than input. */
const PAGE_STATE = /^(_.*|seen|stamp|.*_stamp|step|as|switches|was\..*|switch\..*)$/;

/** Returns the fields that the administrator filled in. Secrets are not shown, nor JSON, which may contain some. */
function shownFields({ body }: KeptForm): ShownField[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const texts = [value].flat().filter((one): one is string => typeof one === 'string' && one !== '');
    const text = texts.join(', ');
    if (text === '' || PAGE_STATE.test(name)) return [];
    const isShown = text.length <= MAX_SHOWN_LENGTH && !isSecret(name) && !/^\s*[[{]/.test(text);
    return [{ name, length: text.length, ...(isShown && { text }) }];
  });
}

/** Field names of secrets that do not say so themselves: the value of an action's secret, and a repeated password. */
const SECRETS: readonly string[] = ['value', 'repeat'];

const isSecret = (name: string): boolean =>
  name.split('.').some((part) => SECRETS.includes(part) || isSecretName(part) || isMasked(part));
