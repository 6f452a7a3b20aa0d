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

interface Bound {
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
  const bound: Bound[] = before.map(({ action, display_name, on_error }) => ({
    actionId: action.id,
    display_name,
    on_error: on_error ?? 'stop',
  }));
  const at = bound.findIndex((one) => one.actionId === actionId);
  const after = withChange(bound, at, actionId, change);
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
  bound: readonly Bound[],
  at: number,
  actionId: string,
  change: Change,
): Bound[] | undefined {
  const one = bound[at];
  if (change === 'bind') return one === undefined ? [...bound, { actionId, on_error: 'stop' }] : undefined;
  if (one === undefined) return undefined;
  const others = bound.filter((_, index) => index !== at);
  switch (change) {
    case 'unbind':
      return others;
    case 'up':
    case 'down': {
      const to = change === 'up' ? at - 1 : at + 1;
      if (to < 0 || to >= bound.length) return undefined;
      return [...others.slice(0, to), one, ...others.slice(to)];
    }
    default:
      return bound.map((each, index) => (index === at ? { ...each, on_error: change } : each));
  }
}
