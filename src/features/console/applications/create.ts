// Creating an application.
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { callApi } from '../api-calls.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { type ConsoleSession, redirectAfterForm } from '../page.ts';
import { type FaultyField, renderConsole } from '../render.ts';
import { hasUsers, KINDS, newApplication } from './kinds.ts';
import { listAll } from './list-all.ts';
import { type ApplicationsDependencies, addressOf, applicationOf } from './model.ts';

const NAME: FaultyField = { id: 'name', label: 't:console.applications.name' };
const CALLBACK: FaultyField = { id: 'callback', label: 't:console.applications.callback' };

interface EnteredApplication {
  name: string;
  callback: string;
}

/** Shows the kinds of application to choose from. @param fault what was wrong with the entered values. */
export async function showKinds(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { entered, fault }: { entered?: EnteredApplication; fault?: FormFault } = {},
): Promise<void> {
  const { text } = deps.views.locale(ctx);
  const nameFault = faultIn(fault, 'name');
  const callbackFault = faultIn(fault, 'callbacks') && {
    status: 400,
    key: 'console.applications.callbackFault',
  };
  const faulty = nameFault ? NAME : callbackFault && CALLBACK;
  await renderConsole(deps, ctx, session, {
    template: 'console/applications-new',
    section: 'applications',
    title: 't:console.applications.new',
    model: {
      kinds: KINDS,
      values: entered ?? { name: text('console.applications.usualName'), callback: 'http://localhost:3000' },
      faults: { ...(nameFault && { name: nameFault }), ...(callbackFault && { callback: callbackFault }) },
    },
    ...refusalOptions(fault, faulty),
  });
}

/** Creates an application of the chosen kind, and enables the tenant's databases for it. */
export async function create(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { kind: chosen, name, callback } = formFields(ctx, 'kind', 'name', 'callback');
  const kind = KINDS.find((one) => one === chosen);
  if (kind === undefined)
    throw new AuthError(400, 'invalid_request', 'There is no such kind of application.');
  const body = newApplication(kind, name.trim(), hasUsers(kind) && callback !== '' ? callback : undefined);
  let created: unknown;
  try {
    ({ body: created } = await callApi(deps, ctx, session, 'POST /clients', { body }));
  } catch (thrown) {
    return showKinds(deps, ctx, session, { entered: { name, callback }, fault: refusalOf(thrown) });
  }
  const application = applicationOf(created as Record<string, unknown>);
  if (hasUsers(kind)) await enableDatabases(deps, ctx, session, application.client_id);
  redirectAfterForm(ctx, addressOf(application), 'console.said.created');
}

async function enableDatabases(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  client_id: string,
): Promise<void> {
  if (!session.can('read:connections') || !session.can('update:connections')) return;
  for (const { id } of await listAll(deps, ctx, session, 'GET /connections', { strategy: 'auth0' }))
    await callApi(deps, ctx, session, 'PATCH /connections/:id/clients', {
      params: { id: String(id) },
      body: [{ client_id, status: true }],
    });
}
