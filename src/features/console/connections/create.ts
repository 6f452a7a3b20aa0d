// Creating a connection: first the strategy is chosen, then the options are entered.
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { callApi } from '../api-calls.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { redirectAfterForm } from '../page.ts';
import { type FaultyField, renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { isKnown, kindOf, kindsByGroup } from './kinds.ts';
import { faultyOption, filledFields, withEntered } from './options.ts';
import {
  type ConnectionsDependencies,
  DISPLAY_NAME,
  enteredOptions,
  PATH,
  type ShownConnection,
} from './shared.ts';

const NAME: FaultyField = { id: 'name', label: 't:console.connections.name' };

/** Shows the strategies. */
export async function showKinds(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    template: 'console/connections-kinds',
    title: 't:console.connections.new',
    model: { groups: kindsByGroup() },
  });
}

/** Shows the form for a strategy. */
export async function showNew(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await showForm(deps, ctx, session, { name: '', display_name: '' });
}

/** Creates the connection. */
export async function create(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const strategy = strategyAt(ctx);
  const { name = '', display_name = '' } = bodyTexts(ctx);
  const entered = enteredOptions(ctx);
  const { options, faults } = withEntered(strategy, {}, entered);
  const formState = { name, display_name, entered, faults };
  const [parseFault] = Object.values(faults);
  if (parseFault !== undefined) return showForm(deps, ctx, session, { ...formState, fault: parseFault });
  const body = {
    name: name.trim(),
    strategy,
    options,
    ...(display_name.trim() !== '' && { display_name: display_name.trim() }),
  };
  try {
    const created = await callApi(deps, ctx, session, 'POST /connections', { body });
    redirectAfterForm(ctx, `${PATH}/${(created.body as ShownConnection).id}`, 'console.said.created');
  } catch (thrown) {
    await showForm(deps, ctx, session, { ...formState, fault: refusalOf(thrown) });
  }
}

interface Form {
  name: string;
  display_name: string;
  entered?: Record<string, string>;
  /** Faults of options that cannot be parsed, by name. */
  faults?: Record<string, FormFault>;
  fault?: FormFault;
}

async function showForm(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { name, display_name, entered, faults, fault }: Form,
): Promise<void> {
  const strategy = strategyAt(ctx);
  const { has } = deps.views.locale(ctx);
  const fields = filledFields(strategy, {}, { entered, faults, fault });
  // A conflict can only concern the name.
  const nameFault = fault?.status === 409 ? fault : faultIn(fault, 'name');
  const displayNameFault = faultIn(fault, 'display_name');
  const faultyName = nameFault ? NAME : displayNameFault && DISPLAY_NAME;
  await renderConsole(deps, ctx, session, {
    template: 'console/connections-new',
    title: 't:console.connections.new',
    ...refusalOptions(fault, faultyName ?? faultyOption(fields, has)),
    model: {
      kind: kindOf(strategy),
      action: `${PATH}/new/${strategy}`,
      values: { name, display_name },
      faults: {
        ...(nameFault && { name: nameFault }),
        ...(displayNameFault && { display_name: displayNameFault }),
      },
      fields,
    },
  });
}

/** Returns the strategy of the request's path. @throws AuthError 404 */
function strategyAt(ctx: Context): string {
  const strategy = String(ctx.params.strategy);
  if (!isKnown(strategy)) throw new AuthError(404, 'not_found', 'Not Found');
  return strategy;
}
