// Roles, which are named sets of permissions.
import { z } from 'zod';
import type { Stored } from '../base/record.ts';

/** A permission, which is a scope of an API. */
export interface PermissionRecord {
  resource_server_identifier: string;
  permission_name: string;
}

export interface RoleRecord extends Stored {
  name: string;
  description?: string | undefined;
  /** The organization that the role belongs to, whose members alone can have it; undefined for a role of the tenant. */
  owner_id?: string | undefined;
  permissions: PermissionRecord[];
}

// docs/understand/decisions/organizations.md#a-role-of-an-organization-can-be-given-to-its-members-only
/** Whether somebody can have a role: everywhere, or only as a member of an organization. */
export function isRoleFor(role: Pick<RoleRecord, 'owner_id'>, organization?: string): boolean {
  return role.owner_id === undefined || role.owner_id === organization;
}

export const roleSchema = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1).max(255),
  description: z.string().optional(),
  owner_id: z.string().min(1).max(64).optional(),
  permissions: z
    .array(
      z
        .looseObject({ resource_server_identifier: z.string().min(1), permission_name: z.string().min(1) })
        // Deploy tools also write names and descriptions, which come from the API when a permission is shown.
        .transform(({ resource_server_identifier, permission_name }) => ({
          resource_server_identifier,
          permission_name,
        })),
    )
    .default([]),
});
