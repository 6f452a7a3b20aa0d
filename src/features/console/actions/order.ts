// Changes which actions are bound to a trigger, and their order.
import { stampOf } from '../json-text.ts';
import type { BindingAnswer } from './view.ts';

/** A change of the bindings of a trigger. */
type Change = 'bind' | 'unbind' | 'up' | 'down' | 'stop' | 'continue';
export const CHANGES: readonly Change[] = ['bind', 'unbind', 'up', 'down', 'stop', 'continue'];

/** Returns a stamp of the bindings, from which a form detects that they have changed since it was opened. */
export function stampOfBindings(bindings: readonly BindingAnswer[]): string {
  return stampOf(bindings.map(({ action, on_error }) => [action.id, on_error ?? 'stop']));
}

interface Binding {
  actionId: string;
  display_name?: string;
  on_error: 'stop' | 'continue';
}

/** Returns the body of the request that makes the change; undefined when it changes nothing. */
export function changedBindings(
  before: readonly BindingAnswer[],
  actionId: string,
  change: Change,
): { bindings: object[] } | undefined {
  const bindings: Binding[] = before.map(({ action, display_name, on_error }) => ({
    actionId: action.id,
    display_name,
    on_error: on_error ?? 'stop',
  }));
  const index = bindings.findIndex((one) => one.actionId === actionId);
  const after = withChange(bindings, index, actionId, change);
  if (after === undefined) return undefined;
  return {
    bindings: after.map(({ actionId: value, display_name, on_error }) => ({
      ref: { type: 'action_id', value },
      ...(display_name !== undefined && { display_name }),
      ...(on_error === 'continue' && { on_error }),
    })),
  };
}

function withChange(
  bindings: readonly Binding[],
  index: number,
  actionId: string,
  change: Change,
): Binding[] | undefined {
  const one = bindings[index];
  if (change === 'bind') return one === undefined ? [...bindings, { actionId, on_error: 'stop' }] : undefined;
  if (one === undefined) return undefined;
  const others = bindings.filter((_, other) => other !== index);
  switch (change) {
    case 'unbind':
      return others;
    case 'up':
    case 'down': {
      const to = change === 'up' ? index - 1 : index + 1;
      if (to < 0 || to >= bindings.length) return undefined;
      return [...others.slice(0, to), one, ...others.slice(to)];
    }
    default:
      return bindings.map((each, other) => (other === index ? { ...each, on_error: change } : each));
  }
}
