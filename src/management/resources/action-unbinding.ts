// What becomes of the triggers of an action that is removed.
import { documentsOf, type KeptDependencies } from '../kept.ts';
import { conflict } from '../resource.ts';

interface Binding {
  readonly action: { readonly id: string };
}

/**
 * Takes an action off its triggers. It may be what keeps somebody out, so that it is not removed from under them unasked.
 * @throws AuthError 409
 */
export async function unbind({ store, now }: KeptDependencies, id: string, isForced: boolean): Promise<void> {
  const others = (bindings: unknown) =>
    ((bindings ?? []) as readonly Binding[]).filter(({ action }) => action.id !== id);
  for (const trigger of await documentsOf(store, 'trigger')) {
    const { bindings = [] } = trigger.body as { bindings?: readonly Binding[] };
    if (others(bindings).length === bindings.length) continue;
    if (!isForced) throw conflict('The action is bound to a trigger: unbind it first, or say force=true.')();
    await store.collection('documents').update(trigger.id, (current) => ({
      ...current,
      body: { ...current.body, bindings: others(current.body.bindings) },
      updated_at: now(),
    }));
  }
}
