// What an administrator had sent before they had to log in anew: shown, and sent by them once more or not at all.
import type { RouteDeclarations } from '../http/routes.ts';
import { CONSOLE } from './callbacks.ts';
import { AGAIN, AGAIN_FIELD, type KeptForm, waitingForm } from './kept-form.ts';
import { isHeldBack } from './masked.ts';
import { back, type ConsolePageDependencies, consolePage } from './page.ts';
import { renderConsole } from './render.ts';
import { isSecretName } from './resources/secrets.ts';

/** Characters of a text that are shown; of a longer one it is said how long it is. */
const LONGEST_SHOWN = 120;

/** A field as the page shows it: its text, or how much there is. */
interface ShownField {
  name: string;
  text?: string;
  length: number;
}

export const againRoutes: RouteDeclarations<ConsolePageDependencies> = {
  [`GET ${AGAIN}` as const]: consolePage('', { scopes: [] }, async (deps, ctx, here) => {
    const form = await waitingForm(deps, here);
    // Sent already, in another tab say.
    if (form === undefined) return back(ctx, CONSOLE);
    const { section, path, from } = form;
    await renderConsole(deps, ctx, here, {
      template: 'console/again',
      section,
      title: 't:console.again.title',
      model: { action: path, from, field: AGAIN_FIELD, sent: shownOf(form) },
    });
  }),
};

/** What a page had put into its form for itself. */
const OF_THE_PAGE = /^(_.*|seen|stamp|.*_stamp|step|as|switches|was\..*|switch\..*)$/;

/** What somebody typed or chose, without secrets, nor JSON, in which there may be some. */
function shownOf({ body }: KeptForm): ShownField[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const texts = [value].flat().filter((one): one is string => typeof one === 'string' && one !== '');
    const text = texts.join(', ');
    if (text === '' || OF_THE_PAGE.test(name)) return [];
    const isShown = text.length <= LONGEST_SHOWN && !isSecret(name) && !/^\s*[[{]/.test(text);
    return [{ name, length: text.length, ...(isShown && { text }) }];
  });
}

/** What pages call a secret whose own name says nothing: that of an action, and a new password once more. */
const SECRETS: readonly string[] = ['value', 'repeat'];

const isSecret = (name: string): boolean =>
  name.split('.').some((part) => SECRETS.includes(part) || isSecretName(part) || isHeldBack(part));
