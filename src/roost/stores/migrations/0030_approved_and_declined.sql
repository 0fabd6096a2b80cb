-- Decisions of approvals have the names that the page shows.

UPDATE approvals SET decision = 'approved' WHERE decision = 'granted';
UPDATE approvals SET decision = 'declined' WHERE decision = 'refused';
