// Removes an action that is being deleted from its triggers.
import { type DocumentDependencies, documentsOf } from '../document-resource.ts';
import { conflict } from '../resource.ts';

interface Binding {
  readonly action: { readonly id: string };
}

/**
 * Removes an action from all triggers that it is bound to. Without `force`, this is refused, because the action may
 * be the one that denies access to somebody.
 * @throws AuthError 409 if the action is bound and `isForced` is false
 */
export async function unbind(
  { store, now }: DocumentDependencies,
  id: string,
  isForced: boolean,
): Promise<void> {
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
