// References from actions to modules: resolving them, and finding the actions that use a module.
import {
  ACTION_MODULE,
  type ModuleReference,
  resolveReference,
} from '../../../../records/tenant/action-modules.ts';
import { type DocumentDependencies, documentsOf } from '../../document-resource.ts';
import { apiError } from '../../management-errors.ts';

// docs/understand/decisions/actions-scripts.md#a-module-of-actions-runs-in-the-version-that-an-action-names
export interface ModuleUse {
  view: Record<string, unknown>;
  /** The ids of the module's versions that the deployed action or its draft uses. */
  versionIds: string[];
  isDeployed: boolean;
}

/** @param id the module's. */
export async function usesOf(store: DocumentDependencies['store'], id: string): Promise<ModuleUse[]> {
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
        .map((reference) => resolveReference(modules, reference))
        .find((resolved) => resolved !== undefined),
    );
    const [deployedReference, draftReference] = used;
    const { version } = deployedReference ?? draftReference ?? {};
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
      isDeployed: deployedReference !== undefined,
    };
  });
}

/**
 * Returns references to modules with id, name and version filled in.
 * @throws AuthError 400 if a module or its version does not exist, or a module is referenced twice.
 */
export async function resolvedReferences(
  store: DocumentDependencies['store'],
  references: readonly ModuleReference[],
): Promise<Record<string, unknown>[]> {
  const modules = await documentsOf(store, ACTION_MODULE);
  const all = references.map((reference) => {
    const { module, version } = resolveReference(modules, reference) ?? {};
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
