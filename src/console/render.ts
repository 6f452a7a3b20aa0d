// A page of the console as it is answered: its own part within the frame that all have.
import type { Context } from 'koa';
import type { PageOptions, Views } from '../pages/views.ts';
import { CONSOLE, formsLeadOutside } from './callbacks.ts';
import { navOf } from './nav.ts';
import { isSaid } from './said.ts';
import type { AtConsole } from './session.ts';

export interface RenderDependencies {
  baseUrl: string;
  /** The origin of the console. */
  consoleUrl: string;
  views: Views;
  /** The addresses of the console's pages. */
  paths: ReadonlySet<string>;
}

interface Shown extends Pick<PageOptions, 'status' | 'frames'> {
  /** Below views/pages: `console/<area>-<name>`. */
  template: string;
  /** That of the route, where nothing else is said. */
  section?: string;
  model: object;
  /** What the page's title says. */
  title: Words;
  /** What went wrong. */
  alert?: Words | undefined;
  /** The first field that says what is wrong with it, which the page leads to in place of the alert. */
  faulty?: FaultyField | undefined;
}

/** A field of a form with which something is wrong: its id on the page, and what it is called there. */
export interface FaultyField {
  id: string;
  label: Words;
}

/** A message key after `t:`, or a text that somebody else has chosen, which is never read as a key. */
export type Words = `t:${string}` | { text: string };

/** Answers with a page of the console. */
export async function renderConsole(
  { views, paths, baseUrl, consoleUrl }: RenderDependencies,
  ctx: Context,
  here: AtConsole,
  {
    template,
    section = String(ctx.state.section),
    model,
    title,
    alert,
    faulty,
    status = 200,
    frames = [],
  }: Shown,
): Promise<void> {
  const { administrator, isFresh, token } = here;
  const { said } = ctx.query;
  const { text } = views.locale(ctx);
  const worded = (words: Words) => (typeof words === 'string' ? text(words.slice(2)) : words.text);
  await views.page(
    ctx,
    template,
    {
      ...model,
      csrf: token,
      root: CONSOLE,
      section,
      nav: navOf(here, section, paths),
      administrator,
      isFresh,
      title: worded(title),
      ...(faulty !== undefined && { faultyField: { field: faulty.id, label: worded(faulty.label) } }),
      ...(alert !== undefined && { alert: worded(alert), isAlertOwn: typeof alert === 'object' }),
      ...(alert === undefined && faulty === undefined && isSaid(said) && { said }),
    },
    { status, frames, ...formsLeadOutside({ baseUrl, consoleUrl }) },
  );
}
