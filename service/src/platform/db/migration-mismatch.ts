const RUN_OTHER_VERSION =
  "The migrations on disk differ from those that made this database: run the version that made it, or `stoa-server reset` (test environment only) to begin anew.";

export class MigrationMismatch extends Error {
  constructor(why: string, remedy = RUN_OTHER_VERSION) {
    super(`${why}. ${remedy}`);
    this.name = "MigrationMismatch";
  }
}
