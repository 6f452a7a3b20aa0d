// What actions say of modules, and which actions use a module: as they were deployed, or as a draft.
import { ACTION_MODULE, type ModuleReference, moduleMeant } from '../../records/action-modules.ts';
import { apiError } from '../errors.ts';
import { documentsOf, type KeptDependencies } from '../kept.ts';

/** An action that uses a module. */
export interface ModuleUse {
  /** As it is answered. */
  view: Record<string, unknown>;
  /** The ids of the versions that it has, deployed or in its draft. */
  versionIds: string[];
  /** Whether it is deployed with it. */
  isDeployed: boolean;
}

/** @param id of the module. */
export async function usesOf(store: KeptDependencies['store'], id: string): Promise<ModuleUse[]> {
  const [actions, module] = await Promise.all([
    documentsOf(store, 'action'),
    store.collection('documents').get(id),
  ]);
  const modules = module === undefined ? [] : [module];
  return actions.flatMap((action) => {
    const { body } = action;
    const deployed = body.deployed === true ? body : (body.deployed_version as typeof body | undefined);
    const used = [deployed, body].map((one) =>
      ((one?.modules ?? []) as readonly ModuleReference[])
        .map((reference) => moduleMeant(modules, reference))
        .find((meant) => meant !== undefined),
    );
    const [inForce, draft] = used;
    const { version } = inForce ?? draft ?? {};
    if (version === undefined) return [];
    return {
      view: {
        action_id: action.id,
        action_name: body.name,
        module_version_id: version.id,
        module_version_number: version.version_number,
        supported_triggers: body.supported_triggers,
      },
      versionIds: used.flatMap((one) => one?.version.id ?? []),
      isDeployed: inForce !== undefined,
    };
  });
}

/**
 * What an action says of modules, with all that is known of them.
 * @throws AuthError 400 for one that there is not, or not in that version, and for two of one name.
 */
export async function completedReferences(
  store: KeptDependencies['store'],
  references: readonly ModuleReference[],
): Promise<Record<string, unknown>[]> {
  const modules = await documentsOf(store, ACTION_MODULE);
  const all = references.map((reference) => {
    const { module, version } = moduleMeant(modules, reference) ?? {};
    if (module === undefined || version === undefined) {
      const name = String(reference.module_name ?? reference.module_id ?? '');
      throw apiError(400, `The action module ${name} does not exist in that version.`, 'invalid_body');
    }
    return {
      module_id: module.id,
      module_name: module.body.name,
      module_version_id: version.id,
      module_version_number: version.version_number,
    };
  });
  if (new Set(all.map((one) => one.module_id)).size === all.length) return all;
  throw apiError(400, 'An action has one version of a module.', 'invalid_body');
}
