// A new connection: first its strategy, then its options.
import type { Context } from 'koa';
import { bodyTexts } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { ask } from '../ask.ts';
import { refusalOf } from '../forms.ts';
import { back } from '../page.ts';
import { renderConsole, type Words } from '../render.ts';
import type { AtConsole } from '../session.ts';
import { isKnown, kindOf, kindsByGroup } from './kinds.ts';
import { filledFields, withTyped } from './options.ts';
import { type ConnectionsDependencies, PATH, type ShownConnection, typedOptions } from './shared.ts';

/** The strategies, as tiles. */
export async function showKinds(deps: ConnectionsDependencies, ctx: Context, here: AtConsole): Promise<void> {
  await renderConsole(deps, ctx, here, {
    template: 'console/connections-kinds',
    title: 't:console.connections.new',
    model: { groups: kindsByGroup() },
  });
}

/** The form of a strategy. */
export async function showNew(deps: ConnectionsDependencies, ctx: Context, here: AtConsole): Promise<void> {
  await showForm(deps, ctx, here, { name: '', display_name: '' });
}

/** Makes the connection. */
export async function create(deps: ConnectionsDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const strategy = strategyAt(ctx);
  const { name = '', display_name = '' } = bodyTexts(ctx);
  const typed = typedOptions(ctx);
  const { options, faults } = withTyped(strategy, {}, typed);
  const shown = { name, display_name, typed, faults };
  if (faults.length > 0)
    return showForm(deps, ctx, here, { ...shown, alert: 't:console.connections.faults' });
  const body = {
    name: name.trim(),
    strategy,
    options,
    ...(display_name.trim() !== '' && { display_name: display_name.trim() }),
  };
  try {
    const made = await ask(deps, ctx, here, 'POST /connections', { body });
    back(ctx, `${PATH}/${(made.body as ShownConnection).id}`, 'console.said.created');
  } catch (thrown) {
    await showForm(deps, ctx, here, { ...shown, alert: refusalOf(thrown) });
  }
}

interface Form {
  name: string;
  display_name: string;
  typed?: Record<string, string>;
  faults?: readonly string[];
  alert?: Words;
}

async function showForm(
  deps: ConnectionsDependencies,
  ctx: Context,
  here: AtConsole,
  { name, display_name, typed, faults = [], alert }: Form,
): Promise<void> {
  const strategy = strategyAt(ctx);
  await renderConsole(deps, ctx, here, {
    template: 'console/connections-new',
    title: 't:console.connections.new',
    alert,
    status: alert === undefined ? 200 : 400,
    model: {
      kind: kindOf(strategy),
      action: `${PATH}/new/${strategy}`,
      values: { name, display_name },
      fields: filledFields(strategy, {}, { typed, faults, alert }),
    },
  });
}

/** @throws AuthError 404 */
function strategyAt(ctx: Context): string {
  const strategy = String(ctx.params.strategy);
  if (!isKnown(strategy)) throw new AuthError(404, 'not_found', 'Not Found');
  return strategy;
}
