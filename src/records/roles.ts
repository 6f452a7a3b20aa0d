// Roles: names for sets of permissions.
import type { Stored } from './record.ts';

/** A permission: a scope of an API. */
export interface PermissionRecord {
  resource_server_identifier: string;
  permission_name: string;
}

export interface RoleRecord extends Stored {
  name: string;
  description?: string;
  permissions: PermissionRecord[];
}
