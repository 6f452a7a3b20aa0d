// Renders a page of the console inside the common layout.
import type { Context } from 'koa';
import { pageText } from '../../capabilities/pages/render.ts';
import type { PageOptions, Views } from '../../capabilities/pages/views.ts';
import { CONSOLE, loginFormOptions } from './callbacks.ts';
import { navOf } from './nav.ts';
import { isNotice } from './notices.ts';
import type { ConsoleSession } from './session.ts';

export interface RenderDependencies {
  baseUrl: string;
  consoleUrl: string;
  views: Views;
  paths: ReadonlySet<string>;
}

interface PageContent extends Pick<PageOptions, 'status' | 'frames'> {
  /** The template below views/pages: `console/<area>-<name>`. */
  template: string;
  /** The section of the navigation; by default that of the route. */
  section?: string;
  model: object;
  title: DisplayText;
  /** An error message for the whole page. */
  alert?: DisplayText | undefined;
  /** The first faulty field. The page links to it in place of the alert. */
  faulty?: FaultyField | undefined;
}

/** A faulty form field: its id on the page and its label. */
export interface FaultyField {
  id: string;
  label: DisplayText;
}

/** A message key after `t:`, or a text that is shown as it is. */
export type DisplayText = `t:${string}` | { text: string };

export async function renderConsole(
  { views, paths, baseUrl, consoleUrl }: RenderDependencies,
  ctx: Context,
  session: ConsoleSession,
  {
    template,
    section = session.section,
    model,
    title,
    alert,
    faulty,
    status = 200,
    frames = [],
  }: PageContent,
): Promise<void> {
  const { administrator, isFresh, token } = session;
  const { said } = ctx.query;
  const locale = views.locale(ctx);
  const textOf = (words: DisplayText) =>
    typeof words === 'string' ? pageText(locale, words.slice(2)) : words.text;
  await views.page(
    ctx,
    template,
    {
      ...model,
      csrf: token,
      root: CONSOLE,
      section,
      nav: navOf(session, section, paths),
      administrator,
      isFresh,
      title: textOf(title),
      ...(faulty !== undefined && { faultyField: { field: faulty.id, label: textOf(faulty.label) } }),
      ...(alert !== undefined && { alert: textOf(alert), isAlertOwn: typeof alert === 'object' }),
      ...(alert === undefined && faulty === undefined && isNotice(said) && { said }),
    },
    { status, frames, ...loginFormOptions({ baseUrl, consoleUrl }) },
  );
}
