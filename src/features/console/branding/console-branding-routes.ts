// The routes of branding.

import type { Context } from 'koa';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import { consoleForm, consolePage, LONG_TEXTS, redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOf, refusalOptions, withoutReturns } from '../forms.ts';
import { declareConsolePage, type FaultyField, renderConsole } from '../render.ts';
import { removeTheme, saveLook, showDraft, showLook, showPreview } from './look-page.ts';
import { previewEntered, previewMessage, showMessage, showMessages, submitMessage } from './message-pages.ts';
import { type BrandingDependencies, PATH, SECTION } from './shared.ts';
import { saveTexts, showPrompts, showTexts } from './text-pages.ts';

// The editor of the tenant's page template.

const CALL = '/branding/templates/universal-login';

/** The only field. */
const SOURCE: FaultyField = { id: 'source', label: 't:console.branding.template.source' };

/** A new template, which contains nothing but our page. */
const NEW_TEMPLATE = `<!DOCTYPE html>
<html lang="{{ locale }}">
  <head>
    {%- auth0:head -%}
  </head>
  <body>
    {%- auth0:widget -%}
  </body>
</html>
`;

async function showTemplate(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await showForm(deps, ctx, session, {});
}

async function saveTemplate(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { source = '', order } = bodyTexts(ctx);
  if (order === 'remove') {
    await callApi(deps, ctx, session, `DELETE ${CALL}`);
    return redirectAfterForm(ctx, `${PATH}/template`, 'console.said.deleted');
  }
  try {
    const body = { template: withoutReturns(source) };
    await callApi(deps, ctx, session, `PUT ${CALL}`, { body });
    redirectAfterForm(ctx, `${PATH}/template`, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, session, { source, fault: refusalOf(thrown) });
  }
}

interface BrandingTemplateModel {
  fault: FormFault | undefined;
  tab: string;
  path: string;
  source: string;
  isKept: boolean;
  mayChange: boolean;
  mayDelete: boolean;
}

export const BRANDING_TEMPLATE_PAGE = declareConsolePage<BrandingTemplateModel>('console/branding-template');

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { source, fault }: { source?: string; fault?: FormFault },
): Promise<void> {
  const stored = await storedTemplate(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: BRANDING_TEMPLATE_PAGE,
    title: 't:console.branding.tab.template',
    ...refusalOptions(fault, SOURCE),
    model: {
      fault,
      tab: 'template',
      path: PATH,
      source: source ?? stored ?? NEW_TEMPLATE,
      isKept: stored !== undefined,
      mayChange: session.can('update:branding'),
      mayDelete: session.can('delete:branding'),
    },
  });
}

async function storedTemplate(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<string | undefined> {
  const answer = await callApiIfFound(deps, ctx, session, `GET ${CALL}`);
  return (answer?.body as { body: string } | undefined)?.body;
}

type D = BrandingDependencies;

const page = (scopes: readonly string[], handle: Parameters<typeof consolePage<D>>[2]) =>
  consolePage<D>(SECTION, { scopes }, handle);
const form = (
  scopes: readonly string[],
  handle: Parameters<typeof consoleForm<D>>[2],
  { isDangerous = false } = {},
) => consoleForm<D>(SECTION, { scopes, isDangerous, bodies: LONG_TEXTS }, handle);

const LOOK = ['read:branding'];
const CHANGE = ['update:branding'];

// The scopes for messages depend on whether they belong to a connection, so the handlers check them.
export const brandingRoutes: RouteDeclarations<D> = {
  [`GET ${PATH}` as const]: page(LOOK, showLook),
  [`POST ${PATH}` as const]: form(CHANGE, saveLook),
  [`GET ${PATH}/preview` as const]: page(LOOK, showPreview),
  [`POST ${PATH}/preview` as const]: form(LOOK, showDraft),
  [`POST ${PATH}/theme/delete` as const]: form(['delete:branding'], removeTheme),
  [`GET ${PATH}/template` as const]: page(LOOK, showTemplate),
  // Dangerous: a template may contain scripts, which run where users type their passwords.
  [`POST ${PATH}/template` as const]: form(CHANGE, saveTemplate, { isDangerous: true }),
  [`GET ${PATH}/messages` as const]: page(LOOK, showMessages),
  [`GET ${PATH}/messages/:message` as const]: page([], showMessage),
  // Dangerous: a template receives the link or code of every recipient, and an SMS can be sent to any number.
  [`POST ${PATH}/messages/:message` as const]: form([], submitMessage, { isDangerous: true }),
  [`GET ${PATH}/messages/:message/preview` as const]: page([], previewMessage),
  [`POST ${PATH}/messages/:message/preview` as const]: form([], previewEntered),
  [`GET ${PATH}/texts` as const]: page(['read:prompts'], showPrompts),
  [`GET ${PATH}/texts/:prompt/:language` as const]: page(['read:prompts'], showTexts),
  [`POST ${PATH}/texts/:prompt/:language` as const]: form(['update:prompts'], saveTexts),
};
