// Modules of actions: code that several actions share. Each action names the version of a module that it uses.

import type { Frozen } from '../base/record.ts';
import type { DocumentRecord } from './documents.ts';

/** The kind of the documents that hold modules. */
export const ACTION_MODULE = 'action-module';

type Document = Pick<Frozen<DocumentRecord>, 'id' | 'body'>;

interface RunnableModule {
  name: string;
  code: string;
  /** The names of the npm packages that it requires. */
  dependencies: readonly string[];
  /** The values by name. */
  secrets: Readonly<Record<string, string>>;
}

/** How an action refers to a module: by its id or name, and by the id or number of the version. */
export interface ModuleReference {
  module_id?: string;
  module_name?: string;
  module_version_id?: string;
  module_version_number?: number;
}

/** A published version; it does not change any more. */
export interface ModuleVersion {
  id: string;
  version_number: number;
  code: string;
  dependencies: readonly { name: string }[];
  /** With their values. */
  secrets: readonly { name: string; value?: string }[];
  /** ISO 8601. */
  created_at: string;
}

/**
 * Returns the versions of a module, oldest first. A module of the tenant file that is marked as published has its
 * present content as its only version.
 */
export function moduleVersionsOf({ body }: Document): readonly ModuleVersion[] {
  const {
    versions = [],
    all_changes_published: isPublished,
    code = '',
    dependencies = [],
    secrets = [],
  } = body;
  const moduleVersions = versions as readonly ModuleVersion[];
  if (moduleVersions.length > 0 || isPublished !== true) return moduleVersions;
  return [
    { id: 'published', version_number: 1, code, dependencies, secrets, created_at: '' } as ModuleVersion,
  ];
}

/** Returns the module and version that a reference names, by default the latest version; undefined if there is none. */
export function resolveReference<D extends Document>(
  modules: readonly D[],
  {
    module_id: id,
    module_name: name,
    module_version_id: version,
    module_version_number: number,
  }: ModuleReference,
): { module: D; version: ModuleVersion } | undefined {
  const module = modules.find((one) => (id === undefined ? one.body.name === name : one.id === id));
  const versions = module === undefined ? [] : moduleVersionsOf(module);
  const found =
    version === undefined && number === undefined
      ? versions.at(-1)
      : versions.find((one) => (version === undefined ? one.version_number === number : one.id === version));
  return module && found && { module, version: found };
}

/**
 * @param references the references that the action was deployed with.
 * @param modules the documents of modules.
 */
export function runnableModules(
  references: unknown,
  modules: readonly Document[],
): { name: string; found: RunnableModule | undefined }[] {
  return ((references ?? []) as readonly ModuleReference[]).map((reference) => {
    const resolved = resolveReference(modules, reference);
    const name = String(resolved?.module.body.name ?? reference.module_name ?? reference.module_id);
    if (resolved === undefined) return { name, found: undefined };
    const { code, dependencies, secrets } = resolved.version;
    const found = {
      name,
      code,
      dependencies: dependencies.map((one) => String(one.name)),
      secrets: Object.fromEntries(secrets.map((one) => [one.name, one.value ?? ''])),
    };
    return { name, found };
  });
}
