// Renders a page of the console inside the common layout.

import type { Context } from 'koa';
import { pageText } from '../../capabilities/pages/render.ts';
import {
  declareFramedPage,
  type FramedPage,
  type PageOptions,
  type Views,
} from '../../capabilities/pages/views.ts';
import { CONSOLE, loginFormOptions } from './callbacks.ts';
import type { FormFault } from './form-fault.ts';
import { type NavLine, navOf } from './nav.ts';
import { isNotice } from './notices.ts';
import type { ConsoleSession } from './session.ts';

export interface RenderDependencies {
  baseUrl: string;
  consoleUrl: string;
  views: Views;
  paths: ReadonlySet<string>;
}

/** What the frame of the console reads, and its forms. */
export interface ConsoleFrame {
  /** The console's token, for forms and scripts. */
  csrf: string;
  root: string;
  section: string;
  nav: NavLine[];
  administrator: ConsoleSession['administrator'];
  /** Whether the administrator has logged in recently. */
  isFresh: boolean;
  title: string;
  /** The first faulty field, in place of an alert. */
  faultyField?: Omit<FormFault, 'status'> | undefined;
  alert?: string | undefined;
  /** Message keys of faults that are listed with the alert, by field. */
  alertFaults?: Readonly<Record<string, string | undefined>> | undefined;
  /** Whether the alert is not in the page's language. */
  isAlertOwn?: boolean | undefined;
  /** The message key of what was done. */
  said?: string | undefined;
}

/** Declares a page of the console. @param template `console/<area>-<name>`, the path of its template below views/pages. */
export const declareConsolePage = <Own>(template: string) => declareFramedPage<Own, ConsoleFrame>(template);

interface PageContent<Own> extends Pick<PageOptions, 'status' | 'frames'> {
  page: FramedPage<Own, ConsoleFrame>;
  /** The section of the navigation; by default that of the route. */
  section?: string;
  model: NoInfer<Own>;
  title: DisplayText;
  /** An error message for the whole page. */
  alert?: DisplayText | undefined;
  /** Message keys of faults that are listed with the alert, by field. */
  alertFaults?: Readonly<Record<string, string | undefined>> | undefined;
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

export async function renderConsole<Own extends object>(
  { views, paths, baseUrl, consoleUrl }: RenderDependencies,
  ctx: Context,
  session: ConsoleSession,
  {
    page,
    section = session.section,
    model,
    title,
    alert,
    alertFaults,
    faulty,
    status = 200,
    frames = [],
  }: PageContent<Own>,
): Promise<void> {
  const { administrator, isFresh, token } = session;
  const { said } = ctx.query;
  const locale = views.locale(ctx);
  const textOf = (words: DisplayText) =>
    typeof words === 'string' ? pageText(locale, words.slice(2)) : words.text;
  await views.page(
    ctx,
    page,
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
      ...(alert !== undefined && {
        alert: textOf(alert),
        isAlertOwn: typeof alert === 'object',
        alertFaults,
      }),
      ...(alert === undefined && faulty === undefined && isNotice(said) && { said }),
    },
    { status, frames, ...loginFormOptions({ baseUrl, consoleUrl }) },
  );
}
