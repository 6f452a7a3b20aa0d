// Renders a page of the console inside the common layout.

import type { Context } from 'koa';
import { pageText } from '../../capabilities/pages/render.ts';
import {
  declareFramedPage,
  type FramedPage,
  type PageOptions,
  type Views,
} from '../../capabilities/pages/views.ts';
import type { Config } from '../../tenant/config.ts';
import { CONSOLE, loginFormOptions } from './console-callbacks.ts';
import type { ConsoleSession } from './console-session.ts';
import type { FormFault } from './form-fault.ts';
import { type NavLine, navOf, pathOf } from './nav.ts';

const MOVE_PATH = pathOf('move');

// Messages about what a form has done. The query parameter `said` of a page names one of these keys.

// Messages that these pages show after a change.

const USERS_NOTICES: readonly string[] = [
  'userMade',
  'userDeleted',
  'passwordSet',
  'blocked',
  'unblocked',
  'lockoutsLifted',
  'mailSent',
  'unlinked',
  'methodRemoved',
  'browsersForgotten',
  'sessionEnded',
  'accessEnded',
  'tokenEnded',
  'withdrawn',
  'deviceRemoved',
  'roleGiven',
  'roleTaken',
  'permissionGiven',
  'permissionTaken',
].map((name) => `console.users.said.${name}`);

// Messages that these pages show after an action was changed.

const ACTIONS_NOTICES: readonly string[] = ['made', 'saved', 'secretSaved', 'deployed', 'rolledBack'].map(
  (name) => `console.actions.said.${name}`,
);

// Messages that these pages show after a change.
const SECURITY_NOTICES: readonly string[] = [
  'console.security.said.rotated',
  'console.security.said.revoked',
  'console.security.said.unblocked',
];

/** All keys, including those of each area. */
const NOTICES: readonly string[] = [
  'console.said.saved',
  'console.said.created',
  'console.said.deleted',
  ...ACTIONS_NOTICES,
  ...SECURITY_NOTICES,
  ...USERS_NOTICES,
  'console.move.said.ended',
  ...['on', 'off', 'documentsOn', 'documentsOff', 'blocked', 'unblocked', 'approved', 'refused', 'ended'].map(
    (name) => `console.agents.said.${name}`,
  ),
  'console.administrators.invited',
  'console.administrators.ended',
];

/** Reports whether a value of the query is one of these keys. */
function isNotice(value: unknown): value is string {
  return typeof value === 'string' && NOTICES.includes(value);
}

export interface RenderDependencies {
  baseUrl: string;
  consoleUrl: string;
  views: Views;
  paths: ReadonlySet<string>;
  config: Config;
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
  { views, paths, baseUrl, consoleUrl, config }: RenderDependencies,
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
  const move = await config.move();
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
      // Nobody needs the page of a move that is not there.
      nav: navOf(session, section, paths).filter(({ path }) => path !== MOVE_PATH || move !== undefined),
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
