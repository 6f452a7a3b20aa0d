// The editor of the tenant's page template.
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/body-fields.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOf, refusalOptions, withoutReturns } from '../forms.ts';
import { redirectAfterForm } from '../page.ts';
import { type FaultyField, renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { type BrandingDependencies, PATH } from './shared.ts';

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

/** Shows the editor. */
export async function showTemplate(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await showForm(deps, ctx, session, {});
}

/** Saves the template, or deletes it. */
export async function saveTemplate(
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

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { source, fault }: { source?: string; fault?: FormFault },
): Promise<void> {
  const stored = await storedTemplate(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    template: 'console/branding-template',
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
