import{Z as i,b as o,m as r,o as m}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
